"""`relet COMMAND`: the arguments of all commands, and what an error looks like to whoever typed them."""

from __future__ import annotations

import argparse
import io
import os
import sys
from collections.abc import Sequence
from typing import Any, NoReturn

from .._core.redact import without_passwords
from .._version import __version__
from ..errors import InvalidInput, ReletError, SchemaMismatch, UnknownTask
from . import (
    bench,
    completion,
    demo,
    doctor,
    enqueue,
    history,
    jobs,
    migrate,
    output,
    progress,
    prune,
    queues,
    schedules,
    targets,
    top,
    web,
    worker,
    workers,
)
from .load_app import Wrong

COMMANDS = (
    worker, enqueue, jobs, queues, workers, targets, schedules, history, top, web, doctor, prune, migrate,
    completion, bench, demo,
)  # fmt: skip

NOBODY_READS = 141


def main(arguments: Sequence[str] | None = None) -> NoReturn:
    """Parse, run, exit: 0 if all went well, 1 with a sentence if not, 2 if the arguments make no sense."""
    _write_anything()
    options = parse(arguments)
    try:
        code = options.run(options)
        sys.stdout.flush()
    except (Wrong, ReletError) as error:
        print(f"relet: {output.lines(without_passwords(_worded(error, options)))}", file=sys.stderr)
        code = 2 if isinstance(error, InvalidInput | UnknownTask) else 1
    except KeyboardInterrupt:
        code = progress.INTERRUPTED
    except BrokenPipeError:  # `relet jobs shop:app | head`
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())  # else Python complains when it ends
        code = NOBODY_READS
    sys.exit(code)


class Version(argparse.Action):
    """As the `version` action, but the version is read only when it is asked for."""

    def __init__(self, option_strings: Sequence[str], dest: str, **options: Any) -> None:
        super().__init__(option_strings, dest=argparse.SUPPRESS, default=argparse.SUPPRESS, nargs=0, **options)

    def __call__(self, parser: argparse.ArgumentParser, *_: object) -> NoReturn:
        print(f"relet {__version__}")
        parser.exit()


def build() -> argparse.ArgumentParser:
    """All commands and their arguments."""
    parser = argparse.ArgumentParser(prog="relet", description="A job queue whose jobs live in your own database.")
    parser.add_argument("--version", action=Version, help="show program's version number and exit")
    commands = parser.add_subparsers(metavar="COMMAND", required=True)
    for command in COMMANDS:
        command.add_to(commands)
    for subparser in commands.choices.values():
        subparser.set_defaults(parser=subparser)
    return parser


def parse(arguments: Sequence[str] | None = None) -> argparse.Namespace:
    """As `parse_args`, but words may also stand behind options: `jobs shop:app --queue mail resume`."""
    options, rest = build().parse_known_args(arguments)
    if rest and (not hasattr(options, "words") or any(word.startswith("-") and word != "-" for word in rest)):
        options.parser.error(f"unrecognized arguments: {' '.join(rest)}")
    if rest:
        options.words = [*options.words, *rest]
    return options


def _write_anything() -> None:
    """A terminal that cannot show a letter gets a question mark, not an error."""
    for stream in (sys.stdout, sys.stderr):
        if isinstance(stream, io.TextIOWrapper):
            stream.reconfigure(errors="replace")


def _worded(error: Exception, options: argparse.Namespace) -> str:
    """What went wrong, in the words of the command line where they differ from those of a program."""
    if not isinstance(error, SchemaMismatch):
        return str(error)
    given = getattr(options, "tenant", None) or ()
    tenants = "".join(f" --tenant {name.partition('=')[0]}" for name in ([given] if isinstance(given, str) else given))
    return str(error).replace("app.client.migrate()", f"relet migrate {options.app}{tenants}")
