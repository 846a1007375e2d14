"""Statements: their names, their texts, and how a text is rendered for a driver.

A flow yields `write("claim", worker=..., ...)`, or `read`. The text of it is `sql/claim.postgres.sql` or
`sql/claim.sqlite.sql`: the same `:name` parameters in both. `{schema}` and `{now}` are the only words replaced in a
text. Lists and batches travel as one JSON parameter, so that every driver binds the same few types: text, numbers,
booleans, null.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Generator
from functools import cache
from pathlib import Path
from typing import Any, Literal, TypeVar, cast

import msgspec
from msgspec import Struct

SQL = Path(__file__).parent / "sql"

Dialect = Literal["postgres", "sqlite"]
Style = Literal["pyformat", "dollar", "named", "alchemy"]
Row = tuple[Any, ...]

R = TypeVar("R")
F = TypeVar("F", bound=Callable[..., Any])

NOW = {
    # The start of the statement: a moment that an index can be asked about, and that is not old in a long transaction.
    "postgres": "coalesce(to_timestamp(:now::float8), statement_timestamp())",
    # The clock has milliseconds; what comes behind them is an accident of the arithmetic.
    "sqlite": "coalesce(:now, round((julianday('now') - 2440587.5) * 86400, 3))",
}


class Query(Struct, frozen=True):
    """One statement to run (on SQLite: a short script) and the values of its parameters."""

    name: str
    params: dict[str, Any]
    writes: bool = True


class Begin(Struct, frozen=True):
    """What follows is more than one statement and must be one transaction."""


class Wake(Struct, frozen=True):
    """Tell those who sleep, once what was written is committed. `channel` says whom."""

    channel: Literal["jobs", "done", "request"]


Step = Query | Begin | Wake
Flow = Generator[Step, list[Row], R]

BEGIN = Begin()


def write(name: str, /, **params: Any) -> Query:
    """A statement that changes something."""
    return Query(name, params)


def read(name: str, /, **params: Any) -> Query:
    """A statement that only looks."""
    return Query(name, params, writes=False)


def pairs(rows: list[Row]) -> dict[str, Any]:
    """Rows of two columns as a dictionary."""
    return {key: value for key, value in rows}  # noqa: C416  (a Row is a tuple of any length to the type checker)


_looks: set[Callable[..., Any]] = set()


def look(flow: F) -> F:
    """Marks a flow that changes nothing: it needs no write lock."""
    _looks.add(flow)
    return flow


def is_look(flow: Callable[..., Any]) -> bool:
    """Whether a flow was marked so."""
    return flow in _looks


LONG = 30.0  # seconds for statements that go through many rows

_seconds: dict[Callable[..., Any], float] = {}


def bounded(seconds: float) -> Callable[[F], F]:
    """Marks a flow whose statements may each take this long on the server, as they go through many rows."""

    def register(flow: F) -> F:
        _seconds[flow] = seconds
        return flow

    return register


def seconds_of(flow: Callable[..., Any]) -> float | None:
    """How long a statement of this flow may take; None: as long as any."""
    return _seconds.get(flow)


_repeats: dict[Callable[..., Any], Callable[..., Any]] = {}


def repeated_by(repeat: F) -> Callable[[F], F]:
    """Names the flow to run in place of this one once an earlier try may have been committed.

    It recognises what that try wrote by an id that the caller chose: the job's, or the token of a claim.
    """

    def register(flow: F) -> F:
        _repeats[flow] = repeat
        return flow

    return register


def repeat_of(flow: F) -> F:
    """What to run when the outcome of an earlier try is unknown: most flows can simply be run again."""
    return cast("F", _repeats.get(flow, flow))


_encoder = msgspec.json.Encoder()


def as_json(value: Any) -> str:
    """A list or batch as the one parameter that carries it."""
    return _encoder.encode(value).decode()


class Text(Struct, frozen=True):
    """A statement rendered for a driver: its text, and its parameters in order where they are numbered."""

    sql: str
    names: tuple[str, ...]

    def numbered(self, params: dict[str, Any]) -> list[Any]:
        """Values for a driver that counts its parameters."""
        return [params[name] for name in self.names]

    def named(self, params: dict[str, Any]) -> dict[str, Any]:
        """Values for a driver that names its parameters, and only those that the text mentions."""
        return {name: params[name] for name in self.names}


@cache
def source(name: str, dialect: Dialect) -> str:
    """The text of a statement as it stands in its file."""
    return (SQL / f"{name}.{dialect}.sql").read_text(encoding="utf-8")


@cache
def texts(name: str, dialect: Dialect, style: Style, schema: str) -> tuple[Text, ...]:
    """The statements of a file, rendered for a driver. PostgreSQL files hold one, SQLite files a few."""
    text = in_schema(source(name, dialect).replace("{now}", NOW[dialect]), dialect, schema)
    return tuple(render(part, style) for part in split(text))


def in_schema(text: str, dialect: Dialect, schema: str) -> str:
    """A text with the names of its tables: in a schema, or, where there are none, with a prefix of their own."""
    return text.replace("{schema}.", f"{schema}_") if dialect == "sqlite" else text.replace("{schema}", schema)


# Comments, strings, quoted identifiers and casts are passed over; what is left of colons are parameters.
_TOKEN = re.compile(
    r"""(?P<comment>--[^\n]*|/\*.*?\*/)|(?P<string>'(?:[^']|'')*'|"(?:[^"]|"")*"|\$\$.*?\$\$)|(?P<cast>::)"""
    r"""|:(?P<name>[a-z_]+)|(?P<percent>%)|(?P<end>;)""",
    re.DOTALL,
)


def split(text: str) -> list[str]:
    """The statements of a script, comments gone."""
    parts, begun = [""], 0
    for token in _TOKEN.finditer(text):
        parts[-1] += text[begun : token.start()]
        begun = token.end()
        if token["end"]:
            parts.append("")
        elif not token["comment"]:
            parts[-1] += token.group()
    parts[-1] += text[begun:]
    return [part.strip() for part in parts if part.strip()]


def render(text: str, style: Style) -> Text:
    """A statement with its `:name` parameters in the style of a driver."""
    names: list[str] = []

    def replaced(token: re.Match[str]) -> str:
        name = token["name"]
        if name is None:
            return _literal(token.group(), style)
        if name not in names:
            names.append(name)
        return {"pyformat": f"%({name})s", "dollar": f"${names.index(name) + 1}"}.get(style, f":{name}")

    return Text(_TOKEN.sub(replaced, text), tuple(names))


def _literal(text: str, style: Style) -> str:
    """A piece of the statement that is no parameter, with what the driver would misread in it escaped."""
    if style == "pyformat":
        return text.replace("%", "%%")
    return text.replace(":", r"\:") if style == "alchemy" else text
