"""The standard streams as a shell hands them over: closed, full, or read by somebody who has enough."""

from __future__ import annotations

import contextlib
import errno
import os
import sys
from typing import NoReturn, TextIO

from biaskit.errors import BiaskitError


def open_closed_streams() -> None:
    """Put /dev/null in the place of a stream that is closed (`>&-`).

    The next file to be opened would take its number, and what a library prints would end in a run's rows.
    """
    for number, name, mode in ((0, "stdin", "r"), (1, "stdout", "w"), (2, "stderr", "w")):
        try:
            os.fstat(number)
        except OSError:
            os.open(os.devnull, os.O_RDWR)  # takes the lowest number that is free, which is this one
        if getattr(sys, name) is None:
            setattr(sys, name, open(number, mode, encoding="utf-8", closefd=False))  # noqa: SIM115


def refuse_unwritten(error: OSError) -> NoReturn:
    """Stdout did not take what was printed; a reader that has enough (`| head`) is left to click."""
    if error.errno == errno.EPIPE:
        raise error
    raise BiaskitError(
        f"Standard output cannot be written: {error.strerror or error}. What lies in files is whole."
    ) from error


def flush() -> OSError | None:
    """Write what the streams still hold; returns what keeps stdout from taking it.

    A stream that takes nothing more is put aside: at the end Python would complain about it and change the
    exit code.
    """
    failed = None
    for stream in (sys.stdout, sys.stderr):
        try:
            stream.flush()
        except OSError as error:
            failed = error if stream is sys.stdout else failed
            _put_aside(stream)
        except ValueError:  # closed by whoever called
            pass
    return failed


def _put_aside(stream: TextIO) -> None:
    with contextlib.suppress(OSError, ValueError):
        nowhere = os.open(os.devnull, os.O_WRONLY)
        os.dup2(nowhere, stream.fileno())
        os.close(nowhere)
