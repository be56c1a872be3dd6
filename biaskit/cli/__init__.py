"""The command line: the group, one error boundary, commands imported when they run."""

from __future__ import annotations

import contextlib
import errno
import os
import signal
import sys
from functools import partial
from importlib import import_module
from typing import Any, NoReturn

import click

from biaskit.arguments import BY_COMMAND
from biaskit.common.foreign import visible
from biaskit.errors import BiaskitError, nearest
from biaskit.measurement import KINDS, measurement, measurements
from biaskit.progress import sign_of_life, tell

COMMANDS = {
    **{kind.name: kind.about for kind in measurements()},
    "analyze": "rebuild all tables from stored answers, or analyze your own texts or decisions",
    "label": "draw texts for a person to label, which corrects shares of women",
    "compare": "compare models, with tests between them",
    "check": "check runs against thresholds; exit 4 if any fails",
    "verify": "check a stored run and query a random sample of its answers again",
    "report": "write an HTML page about stored runs, with figures and LaTeX tables",
    "export": "convert runs for other tools: logs, tasks, model cards",
    "import": "load batch answers (--write-requests) into a run",
    "calibrate": "choose C and alpha of Calibrated Marked Words for your own texts",
    "doctor": "find out what a model or an API supports, and which estimator fits",
    "runs": "list the runs in this folder: rows done, rows planned, last write",
    "corpora": "list the shipped corpora and studies, with sources and keys",
    "cite": "print a run's signature and the BibTeX of biaskit and the papers it uses",
}

FIRST_HOUR = """\
biaskit measures how a language model treats gender, and how certain the result is.

  biaskit probe demo --jobs nurse,plumber   a first result on a small real model
  biaskit analyze recorded:demo-base        who recorded texts are about, and how
  biaskit probe hf:ORG/NAME --dry-run       your model: estimated prompts, tokens and time
  biaskit report                            the newest run as a page, with figures
  biaskit --help                            all commands
"""


class _Lazy(click.Group):
    """Commands are listed from a table and imported when one of them runs."""

    def list_commands(self, ctx: click.Context) -> list[str]:
        return list(COMMANDS)

    def get_command(self, ctx: click.Context, cmd_name: str) -> click.Command | None:
        if cmd_name not in COMMANDS:
            return None
        if cmd_name in KINDS:
            from biaskit.cli.asking import command_of

            return command_of(measurement(cmd_name))
        module = "importing" if cmd_name == "import" else cmd_name  # a word of the language
        command: click.Command = import_module(f"biaskit.cli.{module}").command
        return command

    def resolve_command(self, ctx: click.Context, args: list[str]) -> Any:
        if args and args[0] == "help":  # as git and others have it
            args = [args[1], "--help"] if args[1:] else ["--help"]
            if args == ["--help"]:
                click.echo(ctx.get_help())
                ctx.exit()
        if args and args[0] not in COMMANDS and not args[0].startswith("-"):
            raise click.UsageError(f"There is no command {args[0]!r}.{nearest(args[0], COMMANDS)}")
        return super().resolve_command(ctx, args)

    def format_commands(self, ctx: click.Context, formatter: click.HelpFormatter) -> None:
        with formatter.section("Commands"):
            formatter.write_dl(list(COMMANDS.items()))


@click.command(
    cls=_Lazy, invoke_without_command=True, context_settings={"help_option_names": ["-h", "--help"]}
)
@click.version_option(package_name="biaskit")
@click.pass_context
def cli(ctx: click.Context) -> None:
    """Measure how a language model treats gender, and how certain the result is."""
    ctx.call_on_close(partial(BY_COMMAND.reset, BY_COMMAND.set(True)))
    if ctx.invoked_subcommand is None:
        click.echo(FIRST_HOUR, nl=False)


def main() -> NoReturn:
    """Run a command; the only place where an error becomes a line and an exit code."""
    signal.signal(signal.SIGTERM, signal.default_int_handler)  # as Ctrl-C
    for name in ("stdin", "stdout", "stderr"):  # in this order: each takes its own closed descriptor again
        stream = getattr(sys, name)
        if stream is None or getattr(stream, "closed", False):  # a service, pythonw
            nowhere = open(os.devnull, "r" if name == "stdin" else "w", encoding="utf-8")  # noqa: SIM115
            setattr(sys, name, nowhere)
    command = " ".join(sys.argv[1:2])
    then = "lists and the model" if command in KINDS else "stored runs"
    with sign_of_life(f"biaskit {command}: loading libraries (seconds), then {then} ...\n"):
        status = _run()
    try:
        sys.stdout.flush()
    except OSError as error:
        # Python would try again at its end, complain, and change the exit code.
        with contextlib.suppress(OSError, ValueError):
            os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
        if not status and error.errno != errno.EPIPE:
            status = _say(f"Standard output cannot be written: {error.strerror or error}.", 1)
    sys.exit(status)


def _run() -> int:
    stdout = sys.stdout
    try:
        status = cli.main(standalone_mode=False)
    except BiaskitError as error:
        status = _say(str(error), error.exit_code)
    except click.UsageError as error:
        where = f" See {error.ctx.command_path} --help." if error.ctx else ""
        command = error.ctx.command.name if error.ctx else None
        here = ""
        if command in KINDS and isinstance(error, click.NoSuchOption):
            from biaskit.cli.asking import other_name

            here = other_name(command, error.option_name)
        status = _say(f"{error.format_message()}{here}{where}", 2)
    except click.ClickException as error:
        status = _say(error.format_message(), 2)
    except (KeyboardInterrupt, click.Abort):
        status = _say("Stopped.", 130)
    except SystemExit as error:
        # click meets `| head` by replacing stdout and leaving with 1; a reader that has enough is no failure.
        status = error.code if sys.stdout is stdout else 0
    except MemoryError:
        status = _say("Out of memory: use a smaller --batch-size. Stored rows are kept.", 1)
    except OSError as error:
        # An error of the system that nothing foresaw needs no traceback.
        status = _say(f"{error.filename or 'Output'} failed: {error.strerror or error}.", 1)
    return status if isinstance(status, int) else 0


def _say(message: str, status: int) -> int:
    tell(visible(f"biaskit: {message}\n", keep="\n"))
    return status
