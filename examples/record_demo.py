"""Record the corpus behind `recorded:demo-base`: personas and biographies by the base model `demo-base`.

    python examples/record_demo.py RUN corpora/recorded/demo-base

Draws into RUN (an hour on two cores; the same command goes on where it stopped) and packs rows and manifest
into the second folder, smaller than 2 MB. Then put the new digests into corpora/recorded/corpus.toml.
"""

from __future__ import annotations

import gzip
import hashlib
import json
import sys
from pathlib import Path

import biaskit as bk

# Four occupations of which the model writes as women's and as men's often enough.
OCCUPATIONS = ["teacher", "lawyer", "doctor", "cook"]


def main() -> int:
    """Draw, pack, print the digests."""
    if len(sys.argv) != 3:
        print(__doc__, file=sys.stderr)
        return 2
    run, target = Path(sys.argv[1]), Path(sys.argv[2])
    bk.personas(
        "demo-base",
        study="gasp",
        occupations=OCCUPATIONS,
        per_gender=40,
        max_samples=900,
        max_new_tokens=120,
        settings={"batch": 300},
        out=run,
    )
    target.mkdir(parents=True, exist_ok=True)
    manifest = json.loads((run / "manifest.json").read_text(encoding="ascii"))
    manifest["command"] = "python examples/record_demo.py"  # not the folders of whoever ran it
    content = json.dumps(manifest, indent=1, ensure_ascii=True) + "\n"
    (target / "manifest.json").write_text(content, encoding="ascii")
    rows = (run / "personas.jsonl").read_bytes()
    # No name and no time of day in the file, so that the same rows give the same bytes.
    (target / "personas.jsonl.gz").write_bytes(gzip.compress(rows, compresslevel=9, mtime=0))
    for name in ("manifest.json", "personas.jsonl.gz"):
        file_content = (target / name).read_bytes()
        print(f"{name}  {len(file_content):,} bytes  sha256 {hashlib.sha256(file_content).hexdigest()}")
    return 0


if __name__ == "__main__":
    sys.exit(main())
