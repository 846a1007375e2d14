"""The commands of `relet` with their verbs and options, read from the parser."""

from __future__ import annotations

import argparse
from typing import NamedTuple

from relet._cli.main import build


class Command(NamedTuple):
    name: str
    verbs: tuple[str, ...]
    options: tuple[str, ...]  # long names


def all_commands() -> list[Command]:
    (commands,) = (action for action in build()._actions if isinstance(action, argparse._SubParsersAction))
    return [Command(name, _verbs(parser), _options(parser)) for name, parser in commands.choices.items()]


def _verbs(parser: argparse.ArgumentParser) -> tuple[str, ...]:
    """The verbs of a command, or the choices of its first positional argument that has any."""
    choices = [tuple(action.choices) for action in parser._actions if not action.option_strings and action.choices]
    return parser.get_default("verbs") or (choices[0] if choices else ())


def _options(parser: argparse.ArgumentParser) -> tuple[str, ...]:
    actions = [action for action in parser._actions if action.help != argparse.SUPPRESS]
    return tuple(name for action in actions for name in action.option_strings if name.startswith("--"))
