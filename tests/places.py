"""Where the repository's folders are, for tests at any depth."""

from __future__ import annotations

import importlib.util
import sys
from pathlib import Path
from types import ModuleType

TESTS = Path(__file__).resolve().parent
ROOT = TESTS.parent
GOLDEN = TESTS / "golden"
BENCHMARKS = ROOT / "benchmarks"
SHARED = ROOT.parent / "shared"
"""Papers and texts that lie beside a checkout and are not shipped; a test that needs them skips without."""


def module_of(path: Path) -> ModuleType:
    """A script that is no part of a package, as a module under the name of its file."""
    spec = importlib.util.spec_from_file_location(path.stem, path)
    assert spec is not None
    assert spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    sys.modules[path.stem] = module  # dataclasses look their module up by name
    spec.loader.exec_module(module)
    return module
