"""`leasehold COMMAND`: the arguments of all commands, and what an error looks like to whoever typed them."""

from __future__ import annotations

import argparse
import sys
from collections.abc import Sequence
from importlib.metadata import version
from typing import NoReturn

from ..core.errors import InvalidInput, LeaseholdError, SchemaMismatch
from . import demo, jobs, migrate, schedules, worker
from .load import Wrong


def main(arguments: Sequence[str] | None = None) -> NoReturn:
    """Parse, run, exit: 0 if all went well, 1 with a sentence if not, 2 if the arguments make no sense."""
    parser = argparse.ArgumentParser(prog="leasehold", description="A job queue whose jobs live in your own database.")
    parser.add_argument("--version", action="version", version=f"leasehold {version('leasehold')}")
    commands = parser.add_subparsers(metavar="COMMAND", required=True)
    for command in (worker, jobs, schedules, migrate, demo):
        command.add_to(commands)
    options = parser.parse_args(arguments)
    try:
        code = options.run(options)
    except (Wrong, LeaseholdError) as error:
        print(f"leasehold: {_worded(error, options)}", file=sys.stderr)
        code = 2 if isinstance(error, InvalidInput) else 1
    except KeyboardInterrupt:
        code = 130
    sys.exit(code)


def _worded(error: Exception, options: argparse.Namespace) -> str:
    """What went wrong, in the words of the command line where they differ from those of a program."""
    if not isinstance(error, SchemaMismatch):
        return str(error)
    tenants = "".join(f" --tenant {name.partition('=')[0]}" for name in getattr(options, "tenant", None) or ())
    return str(error).replace("app.client.migrate()", f"leasehold migrate {options.app}{tenants}")
