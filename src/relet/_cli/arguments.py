"""Arguments that many commands share, and the parsers of their values."""

from __future__ import annotations

import argparse
import re
import sys
from collections.abc import Iterable
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any

import msgspec

from .._core.filters import FILTERS
from .._core.job import State
from ..errors import InvalidInput

UNITS = {"": 1.0, "ms": 0.001, "s": 1.0, "m": 60.0, "h": 3600.0, "d": 86400.0, "w": 604800.0}
DURATION = re.compile(r"(\d+(?:\.\d+)?)(ms|[smhdw]?)", re.ASCII)

TIME_FORMS = "2h, 3d, 2026-11-16, 2026-11-16T09:30Z"


def add_app(parser: argparse.ArgumentParser, *, json: bool = True) -> None:
    """Add the arguments of every command that uses a store."""
    parser.add_argument("app", metavar="APP", help="the app as module:attribute, such as shop:app")
    parser.add_argument("--tenant", metavar="NAME", help="use the store of this tenant")
    if json:
        parser.add_argument("--json", action="store_true", help="print one JSON document")


def add_words(parser: argparse.ArgumentParser, what: str, verbs: Iterable[str]) -> None:
    """Add a verb and its operands. The epilog of the parser explains them."""
    parser.add_argument(
        "words", nargs="*", default=[], metavar=f"VERB {what}", help="the action (default list); see below"
    )
    parser.set_defaults(verbs=tuple(verbs))


def add_filters(parser: argparse.ArgumentParser) -> None:
    add = parser.add_argument_group("filters").add_argument
    for name, one in FILTERS.items():
        flag = f"--{one.flag or name}"
        if one.comparison == "one_of":
            add(flag, dest=name, action="append", choices=[state.value for state in State], help=one.help)
        elif one.is_time:
            add(flag, dest=name, type=past_time, metavar="WHEN", help=f"{one.help}: {TIME_FORMS}")
        else:
            add(flag, dest=name, metavar="TEXT" if one.comparison == "contains" else "NAME", help=one.help)


def filters(options: argparse.Namespace) -> dict[str, Any]:
    """The filters on the command line, as keyword arguments of the client."""
    return {name: value for name in FILTERS if (value := getattr(options, name)) is not None}


def describe(which: dict[str, Any]) -> str:
    """Format filters for a person: `state failed, queue mail`."""
    values = {name: " or ".join(value) if isinstance(value, list) else value for name, value in which.items()}
    return ", ".join(f"{FILTERS[name].flag or name} {value}" for name, value in values.items())


def past_time(text: str) -> datetime:
    """Parse `2h` (ago), a date, or a date and a time: UTC, unless the text names another zone."""
    ago = DURATION.fullmatch(text)
    if ago is not None and ago[2]:
        return datetime.now(UTC) - timedelta(seconds=float(ago[1]) * UNITS[ago[2]])
    try:
        found = datetime.fromisoformat(text)
    except ValueError:
        raise argparse.ArgumentTypeError(
            f"invalid time {text!r}: use a duration (90s, 15m, 2h, 3d) or a date (2026-11-16, 2026-11-16T09:30Z)"
        ) from None
    return found if found.tzinfo is not None else found.replace(tzinfo=UTC)


def future_time(text: str) -> datetime:
    """Parse like `past_time`, but add a duration to the current time."""
    ahead = DURATION.fullmatch(text)
    if ahead is not None and ahead[2]:
        return datetime.now(UTC) + timedelta(seconds=float(ahead[1]) * UNITS[ahead[2]])
    return past_time(text)


def duration(text: str) -> float:
    """Parse seconds, or a number with a unit: `90`, `1.5s`, `15m`, `2h`, `7d`."""
    found = DURATION.fullmatch(text)
    if found is None:
        raise argparse.ArgumentTypeError(f"invalid duration {text!r}: use seconds or a unit, such as 90, 15m, 2h, 7d")
    return float(found[1]) * UNITS[found[2]]


def number_or_none(text: str) -> int | None:
    if text == "none":
        return None
    if not text.isdecimal():
        raise argparse.ArgumentTypeError(f"invalid number {text!r}: use a whole number or none")
    return int(text)


def decode(text: str, what: str) -> Any:
    """Decode JSON from the command line. `what` names its source in the error."""
    try:
        return msgspec.json.decode(text)
    except (msgspec.DecodeError, UnicodeEncodeError) as error:
        raise InvalidInput(f"{what} is not JSON ({error}): {text:.80}") from None


def read_text(path: str) -> str:
    """Read a file, or standard input if the path is `-`."""
    try:
        return sys.stdin.read() if path == "-" else Path(path).read_text("utf-8")
    except OSError as error:
        raise InvalidInput(f"Cannot read {path}: {error.strerror}") from None
    except UnicodeDecodeError as error:
        raise InvalidInput(f"{path} is not UTF-8 text: {error}") from None


def named_values(texts: list[str]) -> dict[str, Any]:
    """The values of `--arg NAME=JSON`, by name. Text that is not JSON is a text."""
    return dict(_named_value(text) for text in texts)


def _named_value(text: str) -> tuple[str, Any]:
    name, equals, value = text.partition("=")
    if not equals or not name.isidentifier():
        raise InvalidInput(f"--arg needs NAME=VALUE, such as --arg account=acct-7, not {text!r}.")
    try:
        return name, msgspec.json.decode(value)
    except (msgspec.DecodeError, UnicodeEncodeError):
        if value[:1] in ("{", "[", '"'):
            return name, decode(value, f"--arg {name}")  # it was meant as JSON: raise the decoding error
        return name, value
