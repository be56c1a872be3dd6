"""Where the repository's folders are, for tests at any depth."""

from __future__ import annotations

from pathlib import Path

TESTS = Path(__file__).resolve().parent
ROOT = TESTS.parent
GOLDEN = TESTS / "golden"
BENCHMARKS = TESTS / "benchmarks"
SHARED = ROOT.parent / "shared"
"""Papers and texts that lie beside a checkout and are not shipped; a test that needs them skips without."""
