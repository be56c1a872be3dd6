"""How often the rules of outcomes agree with labels given by hand, on the halves that were held out.

python benchmarks/outcomes.py
"""

from __future__ import annotations

import sys
from pathlib import Path

sys.path.insert(0, str(Path(__file__).resolve().parents[1] / "tests"))

from fakes.labelled import summary

if __name__ == "__main__":
    print(summary(), end="")
