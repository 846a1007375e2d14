"""`relet COMMAND`: parse the arguments, run the command, print errors, exit."""

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
    backup,
    bench,
    check,
    completion,
    demo,
    doctor,
    enqueue,
    erase,
    examples,
    gateway,
    history,
    jobs,
    migrate,
    output,
    progress,
    prune,
    queues,
    run,
    schedules,
    targets,
    top,
    torture,
    web,
    worker,
    workers,
)
from .load_app import CommandError

COMMANDS = (
    worker, enqueue, jobs, run, queues, workers, check, targets, schedules, history, top, web, gateway, doctor, prune,
    erase, migrate, backup, completion, bench, torture, demo,
)  # fmt: skip

BROKEN_PIPE = 141  # 128 + SIGPIPE, as a shell reports it


def main(arguments: Sequence[str] | None = None) -> NoReturn:
    """Run a command and exit: 0 on success, 1 on an error, 2 on invalid arguments. An error prints a message."""
    _replace_unencodable()
    options = parse(arguments)
    try:
        code = options.run(options)
        sys.stdout.flush()
    except (CommandError, ReletError) as error:
        print(f"relet: {output.lines(without_passwords(_message(error, options)))}", file=sys.stderr)
        code = 2 if isinstance(error, InvalidInput | UnknownTask) else 1
    except KeyboardInterrupt:
        code = progress.INTERRUPTED
    except BrokenPipeError:  # `relet jobs shop:app | head`
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())  # else Python reports the broken pipe at exit
        code = BROKEN_PIPE
    sys.exit(code)


class Version(argparse.Action):
    """Like the `version` action of argparse, but reads the version only when the flag is used."""

    def __init__(self, option_strings: Sequence[str], dest: str, **options: Any) -> None:
        super().__init__(option_strings, dest=argparse.SUPPRESS, default=argparse.SUPPRESS, nargs=0, **options)

    def __call__(self, parser: argparse.ArgumentParser, *_: object) -> NoReturn:
        print(f"relet {__version__}")
        parser.exit()


def build() -> argparse.ArgumentParser:
    """Build the parser with all commands."""
    parser = argparse.ArgumentParser(
        prog="relet",
        description="A job queue whose jobs live in your own database.",
        epilog=examples.OVERVIEW,
        formatter_class=argparse.RawDescriptionHelpFormatter,
    )
    parser.add_argument("--version", action=Version, help="print the version and exit")
    commands = parser.add_subparsers(metavar="COMMAND", required=True)
    for command in COMMANDS:
        command.add_to(commands)
    for name, subparser in commands.choices.items():
        subparser.set_defaults(parser=subparser)
        examples.add_to(subparser, name)
    return parser


def parse(arguments: Sequence[str] | None = None) -> argparse.Namespace:
    """Like `parse_args`, but verbs may follow options: `jobs shop:app --queue mail resume`."""
    options, rest = build().parse_known_args(arguments)
    if rest and (not hasattr(options, "words") or any(word.startswith("-") and word != "-" for word in rest)):
        options.parser.error(f"unrecognized arguments: {' '.join(rest)}")
    if rest:
        options.words = [*options.words, *rest]
    return options


def _replace_unencodable() -> None:
    """Print a question mark for a character that the terminal cannot encode, instead of failing."""
    for stream in (sys.stdout, sys.stderr):
        if isinstance(stream, io.TextIOWrapper):
            stream.reconfigure(errors="replace")


def _message(error: Exception, options: argparse.Namespace) -> str:
    """The message of an error, which names the command where the client names a method."""
    if not isinstance(error, SchemaMismatch):
        return str(error)
    option = getattr(options, "tenant", None) or ()
    names = [option] if isinstance(option, str) else option
    tenants = "".join(f" --tenant {name.partition('=')[0]}" for name in names)
    return str(error).replace("app.client.migrate()", f"relet migrate {options.app}{tenants}")
