"""Run biaskit until its n-th operation on a file of a folder, and die there by SIGKILL.

    python killed.py N FOLDER COUNT_FILE ARGUMENT...

With N = 0 it lives, and COUNT_FILE holds how many operations there were. An operation is an audit event
(open, rename, remove, ...) whose first argument is a path below the folder, or an fsync.
"""

from __future__ import annotations

import os
import signal
import sys
from pathlib import Path

EVENTS = (
    *("open", "os.rename", "os.remove", "os.mkdir", "os.rmdir", "os.truncate", "os.link", "os.symlink"),
    *("os.scandir", "os.listdir", "shutil.rmtree", "shutil.copyfile"),
)


def main() -> None:
    """Count, die or end."""
    at, folder, count = int(sys.argv[1]), os.path.join(sys.argv[2], ""), Path(sys.argv[3])
    operations = 0

    def one() -> None:
        nonlocal operations
        operations += 1
        if operations == at:
            os.kill(os.getpid(), signal.SIGKILL)

    def seen(event: str, arguments: tuple[object, ...]) -> None:
        path = arguments[0] if event in EVENTS and arguments else None
        if isinstance(path, str | os.PathLike) and os.path.join(os.getcwd(), path).startswith(folder):
            one()

    def sync(descriptor: int) -> None:
        one()  # a descriptor has no name; what syncs here is the writer
        fsync(descriptor)

    fsync, os.fsync = os.fsync, sync
    sys.argv = ["biaskit", *sys.argv[4:]]
    from biaskit.__main__ import main as biaskit

    sys.addaudithook(seen)
    try:
        biaskit()
    finally:
        if not at:
            count.write_text(str(operations))


if __name__ == "__main__":
    main()
