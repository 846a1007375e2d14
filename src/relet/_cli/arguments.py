"""Arguments that many commands take, and what they mean."""

from __future__ import annotations

import argparse
import re
import sys
from collections.abc import Iterable
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any

import msgspec

from .._core.job import State
from ..errors import InvalidInput

UNITS = {"": 1.0, "ms": 0.001, "s": 1.0, "m": 60.0, "h": 3600.0, "d": 86400.0, "w": 604800.0}
DURATION = re.compile(r"(\d+(?:\.\d+)?)(ms|[smhdw]?)", re.ASCII)
FILTERS = ("state", "queue", "task", "target", "worker", "error", "since", "until")


def add_app(parser: argparse.ArgumentParser, *, json: bool = True) -> None:
    """What all commands that speak to a store take."""
    parser.add_argument("app", metavar="APP", help="where the app is, as in shop:app")
    parser.add_argument("--tenant", metavar="NAME", help="that tenant's")
    if json:
        parser.add_argument("--json", action="store_true", help="print JSON, one document")


def add_words(parser: argparse.ArgumentParser, what: str, verbs: Iterable[str]) -> None:
    """A verb and what it is said to; help tells more about them below."""
    parser.add_argument("words", nargs="*", metavar=f"VERB {what}", help="what to do (default list); see below")
    parser.set_defaults(verbs=tuple(verbs))


def add_filters(parser: argparse.ArgumentParser) -> None:
    """Which jobs."""
    add = parser.add_argument_group("which jobs").add_argument
    add("--state", action="append", choices=[state.value for state in State], help="in this state; repeatable")
    add("--queue", metavar="NAME", help="of this queue")
    add("--task", metavar="NAME", help="of this task")
    add("--target", metavar="NAME", help="of this target")
    add("--worker", metavar="NAME", help="held, or ended, by this worker")
    add("--error", metavar="TEXT", help="whose error contains this, upper or lower case the same; not those over")
    add("--since", type=moment, metavar="WHEN", help="created since then: 2h, 3d, 2026-11-16, 2026-11-16T09:30Z")
    add("--until", type=moment, metavar="WHEN", help="created before then")


def filters(options: argparse.Namespace) -> dict[str, Any]:
    """The filters that were given, as the client calls them."""
    names = {"since": "created_from", "until": "created_to"}
    given = {name: getattr(options, name) for name in FILTERS}
    return {names.get(name, name): value for name, value in given.items() if value is not None}


def told(which: dict[str, Any]) -> str:
    """Filters as a person reads them: `state failed, queue mail`."""
    words = {"created_from": "since", "created_to": "until"}
    shown = {name: " or ".join(value) if isinstance(value, list) else value for name, value in which.items()}
    return ", ".join(f"{words.get(name, name)} {value}" for name, value in shown.items())


def moment(text: str) -> datetime:
    """`2h` (ago), a date, or a date and a time: UTC, unless it names another zone."""
    ago = DURATION.fullmatch(text)
    if ago is not None and ago[2]:
        return datetime.now(UTC) - timedelta(seconds=float(ago[1]) * UNITS[ago[2]])
    try:
        found = datetime.fromisoformat(text)
    except ValueError:
        raise argparse.ArgumentTypeError(
            f"{text!r} is no moment: say how long ago (90s, 15m, 2h, 3d), or when (2026-11-16, 2026-11-16T09:30Z)"
        ) from None
    return found if found.tzinfo is not None else found.replace(tzinfo=UTC)


def later(text: str) -> datetime:
    """A moment to come: as above, but a duration is from now on."""
    ahead = DURATION.fullmatch(text)
    if ahead is not None and ahead[2]:
        return datetime.now(UTC) + timedelta(seconds=float(ahead[1]) * UNITS[ahead[2]])
    return moment(text)


def duration(text: str) -> float:
    """Seconds, or a number with a unit: `90`, `1.5s`, `15m`, `2h`, `7d`."""
    found = DURATION.fullmatch(text)
    if found is None:
        raise argparse.ArgumentTypeError(f"{text!r} is no duration: say seconds, or 90s, 15m, 2h, 7d")
    return float(found[1]) * UNITS[found[2]]


def number_or_none(text: str) -> int | None:
    """A number, or `none`."""
    if text == "none":
        return None
    if not text.isdecimal():
        raise argparse.ArgumentTypeError(f"{text!r} is neither a number nor none")
    return int(text)


def decode(text: str, what: str) -> Any:
    """JSON that was typed."""
    try:
        return msgspec.json.decode(text)
    except (msgspec.DecodeError, UnicodeEncodeError) as error:
        raise InvalidInput(f"{what} is not JSON ({error}): {text:.80}") from None


def read(path: str) -> str:
    """A file, or with `-` what is piped in."""
    try:
        return sys.stdin.read() if path == "-" else Path(path).read_text("utf-8")
    except OSError as error:
        raise InvalidInput(f"cannot read {path}: {error.strerror}") from None
    except UnicodeDecodeError as error:
        raise InvalidInput(f"{path} is not UTF-8 text: {error}") from None
