"""Statements: their names, their texts, and how a text is rendered for a driver.

A flow yields `write("claim/claim", worker=..., ...)`, or `read`. The statement is in `sql/claim/claim.postgres.sql` and
`sql/claim/claim.sqlite.sql`, with the same `:name` parameters in both. Three kinds of words in braces are replaced:
`{schema}`, the shared parts of `fragments.py`, and the words of `MOMENTS`, above all `{now}`. A batch is passed as one
JSON parameter, so that every driver binds the same few types: text, numbers, booleans, null. Statements that only the
store's own connections run may take lists: PostgreSQL gets them as arrays, SQLite as JSON.

Flows do not know the time. Statements use the database's clock, unless the store has a clock, which only tests set and
advance. Then each statement has `:now` in place of the database's functions, and the connection adds that clock's time.
"""

from __future__ import annotations

import os
import re
from collections.abc import Callable, Generator
from functools import cache, partial
from typing import Any, Literal, TypeVar, cast

import msgspec
from msgspec import Struct, structs

from . import rows
from .fragments import SQL, Dialect, with_fragments

Style = Literal["pyformat", "dollar", "named", "alchemy", "qmark"]
Row = tuple[Any, ...]
Channel = Literal["queued", "jobs", "done", "request"]

R = TypeVar("R")
F = TypeVar("F", bound=Callable[..., Any])

Clock = Callable[[], float]  # seconds since 1970

#: By dialect, and by whether the store has a clock.
MOMENTS: dict[tuple[str, bool], dict[str, str]] = {
    ("postgres", False): {
        # The start of the statement: an index can be searched by it, and it is recent even in a long transaction.
        "{now}": "statement_timestamp()",
        # A moment that has passed by the clock of every node: `rows.py` subtracts how far they may be apart.
        "{late}": "statement_timestamp()",
        # How many seconds the transaction has taken so far: none by a clock that only tests advance.
        "{waited}": "extract(epoch from clock_timestamp() - transaction_timestamp())::float8",
        # The store's clock, null if it has none: for functions that read the database's clock several times.
        "{given}": "null::timestamptz",
    },
    ("postgres", True): {
        "{now}": "to_timestamp(:now::float8)",
        "{late}": "to_timestamp(:now::float8)",
        "{waited}": "0.0::float8",
        "{given}": "to_timestamp(:now::float8)",
    },
    # The clock has milliseconds; further digits are a rounding error of the arithmetic.
    ("sqlite", False): {"{now}": "round((julianday('now') - 2440587.5) * 86400, 3)"},
    ("sqlite", True): {"{now}": ":now"},
}


class Query(Struct, frozen=True):
    """One statement to run (on SQLite: a short script) and the values of its parameters."""

    name: str
    params: dict[str, Any]
    writes: bool = True


class Begin(Struct, frozen=True):
    """The following statements are more than one, and must run in one transaction."""


class Notify(Struct, frozen=True):
    """Wake the subscribers of a channel after the commit.

    "queued": the threads that claim. "jobs": these, and the promoters. On PostgreSQL one sleeping worker of each kind
    is notified; one that finds more than it can take passes the notification on. `sent`: only subscribers in this
    process are to be woken.
    """

    channel: Channel
    sent: bool = False


class Conflict(Exception):
    """A row that should be new already exists: run the flow again as if an earlier try had been committed."""


Step = Query | Begin | Notify
Flow = Generator[Step, list[Row], R]

BEGIN = Begin()


def write(name: str, /, **params: Any) -> Query:
    """A statement that writes."""
    return Query(name, params)


def read(name: str, /, **params: Any) -> Query:
    """A statement that only reads."""
    return Query(name, params, writes=False)


def pairs(rows: list[Row]) -> dict[str, Any]:
    """Rows of two columns as a dictionary."""
    return {key: value for key, value in rows}  # noqa: C416  (a Row is a tuple of any length to the type checker)


class Traits(Struct, frozen=True):
    """The properties of a flow that its decorators set.

    `read_only`: it writes nothing, so it needs no write lock. `snapshot`: all of its statements see the same state of
    the database. `seconds`: how long each of its statements may take on the server; None: the default. `repeat`: the
    flow to run in its place once an earlier try may be committed.
    """

    read_only: bool = False
    snapshot: bool = False
    seconds: float | None = None
    repeat: Callable[..., Any] | None = None


LONG = 30.0  # seconds for statements that go through many rows

NO_TRAITS = Traits()
TRAITS: dict[Callable[..., Any], Traits] = {}  # by flow


def _mark(flow: F, **traits: Any) -> F:
    TRAITS[flow] = structs.replace(TRAITS.get(flow, NO_TRAITS), **traits)
    return flow


def read_only(flow: F) -> F:
    """Marks a flow that writes nothing."""
    return _mark(flow, read_only=True)


def snapshot(flow: F) -> F:
    """Marks a flow that writes nothing, and whose statements must all see the same state of the database."""
    return _mark(flow, read_only=True, snapshot=True)


def bounded(seconds: float) -> Callable[[F], F]:
    """Marks a flow whose statements may each take this long on the server, as they go through many rows."""
    return partial(_mark, seconds=seconds)


def repeated_by(repeat: F) -> Callable[[F], F]:
    """Names the flow to run in place of this one once an earlier try may have been committed.

    It recognises what that try wrote by an id that the caller chose: the job's, or the token of a claim.
    """
    return partial(_mark, repeat=repeat)


def repeat_of(flow: F) -> F:
    """The flow to run when the outcome of an earlier try is unknown: most flows can simply be run again."""
    return cast("F", TRAITS.get(flow, NO_TRAITS).repeat or flow)


_encoder = msgspec.json.Encoder()


def as_json(value: Any) -> str:
    """A list or batch as one JSON parameter."""
    return _encoder.encode(value).decode()


class Text(Struct, frozen=True):
    """A statement rendered for a driver: its text, and its parameters in order where they are numbered."""

    sql: str
    names: tuple[str, ...]

    def numbered(self, params: dict[str, Any]) -> list[Any]:
        """Values for a driver with numbered parameters."""
        return [params[name] for name in self.names]

    def named(self, params: dict[str, Any]) -> dict[str, Any]:
        """Values for a driver with named parameters: only those that the text mentions."""
        return {name: params[name] for name in self.names}


@cache
def source(name: str, dialect: Dialect) -> str:
    """The text of a statement as it is in its file."""
    path = os.path.join(SQL, f"{name}.{dialect}.sql")
    if dialect == "rows" and not os.path.exists(path):
        return source(name, "postgres")
    with open(path, encoding="utf-8") as file:
        return file.read()


@cache
def texts(name: str, dialect: Dialect, style: Style, schema: str, has_clock: bool = False) -> tuple[Text, ...]:
    """The statements of a file, rendered for a driver. PostgreSQL files hold one, the others a few."""
    written: Dialect = "postgres" if dialect == "rows" else dialect
    text = with_channels(with_fragments(source(name, dialect), dialect), plain_name(schema))
    if dialect == "rows":
        text = rows.statement(text)
    text = in_schema(text, dialect, schema)
    for word, moment in MOMENTS[written, has_clock].items():
        text = text.replace(word, moment)
    return tuple(render(part, style) for part in split(text))


def with_channels(text: str, schema: str) -> str:
    """Fill in the names of the channels that the statements notify. Names of schemas contain no quotes."""
    return text.replace("{queued_channel}", f"'{schema}.queued'").replace("{jobs_channel}", f"'{schema}.jobs'")


def plain_name(schema: str) -> str:
    """The name of a schema without its quotes."""
    return schema.strip('"')


def values(query: Query, clock: Clock | None) -> dict[str, Any]:
    """The parameters of a statement, with the time of the store's clock if it has one."""
    return query.params if clock is None else {**query.params, "now": clock()}


def in_schema(text: str, dialect: Dialect, schema: str) -> str:
    """Fill in the names of the tables: in a schema, or, as SQLite has none, with the schema's name as a prefix."""
    return text.replace("{schema}.", f"{schema}_") if dialect == "sqlite" else text.replace("{schema}", schema)


# Comments, strings, quoted identifiers, triggers and casts are skipped; the remaining colons begin parameters.
_TOKEN = re.compile(
    r"""(?P<comment>--[^\n]*|/\*.*?\*/)|(?P<string>'(?:[^']|'')*'|"(?:[^"]|"")*"|\$(?P<tag>\w*)\$.*?\$(?P=tag)\$"""
    r"""|create\ trigger.*?\bend(?=;))"""
    r"""|(?P<cast>::)|:(?P<name>[a-z_]+)|(?P<percent>%)|(?P<end>;)""",
    re.DOTALL,
)


def split(text: str) -> list[str]:
    """The statements of a script, without comments."""
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


@cache
def render(text: str, style: Style) -> Text:
    """A statement with its `:name` parameters in the style of a driver."""
    names: list[str] = []

    def replaced(token: re.Match[str]) -> str:
        name = token["name"]
        if name is None:
            return _literal(token.group(), style)
        if name not in names:
            names.append(name)
        placeholders = {"pyformat": f"%({name})s", "dollar": f"${names.index(name) + 1}", "qmark": "?"}
        return placeholders.get(style, f":{name}")

    return Text(_TOKEN.sub(replaced, text), tuple(names))


def _literal(text: str, style: Style) -> str:
    """A part of the statement that is no parameter. Characters that the driver would misread are escaped."""
    if style == "pyformat":
        return text.replace("%", "%%")
    return text.replace(":", r"\:") if style == "alchemy" else text
