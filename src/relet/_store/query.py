"""Statements: their names, their texts, and how a text is rendered for a driver.

A flow yields `write("claim/claim", worker=..., ...)`, or `read`. The text of it is `sql/claim.postgres.sql` or
`sql/claim.sqlite.sql`: the same `:name` parameters in both. `{schema}`, the parts that statements share
(`shared_parts`) and the words of `MOMENTS`, above all `{now}`, are the only ones replaced in a text. Batches travel as
one JSON parameter, so that every driver binds the same few types: text, numbers, booleans, null. Statements that only
our own connections run may take lists: PostgreSQL gets them as arrays, SQLite as JSON.

No flow is told the time. It is the database's, unless the store has a clock (tests move one by hand): then each text
has `:now` in place of the database's functions, and the connection that runs it adds what the clock shows.
"""

from __future__ import annotations

import os
import re
from collections.abc import Callable, Generator
from functools import cache
from typing import Any, Literal, TypeVar, cast

import msgspec
from msgspec import Struct, structs

SQL = os.path.join(os.path.dirname(__file__), "sql")  # not pathlib: it takes 4 ms to import

Dialect = Literal["postgres", "sqlite"]
Style = Literal["pyformat", "dollar", "named", "alchemy", "qmark"]
Row = tuple[Any, ...]
Channel = Literal["queued", "jobs", "done", "request"]

R = TypeVar("R")
F = TypeVar("F", bound=Callable[..., Any])

Clock = Callable[[], float]  # seconds since 1970

#: By dialect, and by whether the store has a clock.
MOMENTS: dict[tuple[Dialect, bool], dict[str, str]] = {
    ("postgres", False): {
        # The start of the statement: an index can be searched by it, and it is not old in a long transaction.
        "{now}": "statement_timestamp()",
        # How many seconds the transaction has taken so far: a clock that stands still shows none.
        "{waited}": "extract(epoch from clock_timestamp() - transaction_timestamp())::float8",
        # The clock of the store, null if there is none: for functions that read the database's clock several times.
        "{given}": "null::timestamptz",
    },
    ("postgres", True): {
        "{now}": "to_timestamp(:now::float8)",
        "{waited}": "0.0::float8",
        "{given}": "to_timestamp(:now::float8)",
    },
    # The clock has milliseconds; what comes behind them is an accident of the arithmetic.
    ("sqlite", False): {"{now}": "round((julianday('now') - 2440587.5) * 86400, 3)"},
    ("sqlite", True): {"{now}": ":now"},
}

#: What the statements that claim share, spelled once.
#:
#: {claimed}: what they return of a job; `claimed` of `flows/rows.py` reads it. What most jobs do not have comes as one
#: list, or as null. On PostgreSQL no function in it depends on the session: engines that distribute rows refuse those
#: in RETURNING. {leased}: what becomes of a job that is claimed. {room}: the queues that may be served, in the order
#: asked for (sorted, as the planner would join them in another): not those that are paused, and, unless the limits are
#: locked, only those before the first that has one.
CLAIMED = {
    "postgres": """
        j.id::text, j.version, j.task, j.queue, j.payload::text, j.attempt, j.max_attempts, j.policy::text, j.rank,
        j.seq, date_part('epoch', j.created_at - timestamptz 'epoch'),
        date_part('epoch', j.run_at - timestamptz 'epoch'), date_part('epoch', j.expires_at - timestamptz 'epoch'),
        case when j.target is not null or j.losses > 0 or j.lease is not null or j."position" > 0 or j.key is not null
               or j.blockers > 0 or j.context is not null
        then array[j.target, j.losses::text, j.lease::text, j.chain::text, j."position"::text, j.key, j.blockers::text,
                   j.context] end""",
    "sqlite": """
        id, version, task, queue, payload, attempt, max_attempts, policy, rank, seq, created_at, run_at, expires_at,
        case when target is not null or losses > 0 or lease is not null or position > 0 or key is not null
               or blockers > 0 or context is not null
        then json_array(target, losses, lease, chain, position, key, blockers, context) end""",
}
LEASED = {
    "postgres": """state = 'running', attempt = j.attempt + 1, version = j.version + 1, worker = :worker::text,
    token = :token::text::uuid, started_at = {now}, alone = :alone::boolean, progress = null, renewed_at = null,
    expires_at = {now} + make_interval(secs => coalesce(j.lease, :lease::float8))""",
    "sqlite": """state = 'running', attempt = attempt + 1, version = version + 1, worker = :worker, token = :token,
    started_at = {now}, alone = :alone, progress = null, renewed_at = null,
    expires_at = {now} + coalesce(lease, :lease)""",
}
ROOM = {
    "postgres": """
asked as materialized (
    select s.queue, s.want, s.first, s.last, s.place
    from unnest(:queues::text[], :wants::integer[], :firsts::integer[], :lasts::integer[])
         with ordinality as s(queue, want, first, last, place)
),
closed as materialized (select q.queue, q.paused, q.limited from {schema}.queues q where q.paused or q.limited),
room as materialized (
    select r.queue, r.want, r.first, r.last
    from asked r
    where not exists (select from closed q where q.paused and q.queue = r.queue)
      and (:limited::boolean or r.place < coalesce(
        (select min(a.place) from closed q, asked a where q.limited and q.queue in (a.queue, '*')), r.place + 1))
    order by r.place
)""",
    "sqlite": """
    not exists (select 1 from {schema}.queues q where q.queue = s.value and q.paused)
      and not exists (
        select 1 from {schema}.queues q, json_each(:queues) a
        where not :limited and q.limited and q.queue in (a.value, '*') and a.key <= s.key)""",
}


class Query(Struct, frozen=True):
    """One statement to run (on SQLite: a short script) and the values of its parameters."""

    name: str
    params: dict[str, Any]
    writes: bool = True


class Begin(Struct, frozen=True):
    """What follows is more than one statement and must be one transaction."""


class Notify(Struct, frozen=True):
    """Tell those who sleep, once what was written is committed. `channel` says whom.

    "queued": the threads that claim. "jobs": these, and the promoters. `sent`: the statement itself has notified other
    processes.
    """

    channel: Channel
    sent: bool = False


class Conflict(Exception):
    """A row that should be new is there already: the flow is to be run as if an earlier try had been committed."""


Step = Query | Begin | Notify
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


class Traits(Struct, frozen=True):
    """What decorators say of a flow.

    `looks`: it changes nothing, so it needs no write lock. `seconds`: how long each of its statements may take on the
    server; None: as long as any. `repeat`: the flow to run in its place once an earlier try may have been committed.
    """

    looks: bool = False
    seconds: float | None = None
    repeat: Callable[..., Any] | None = None


LONG = 30.0  # seconds for statements that go through many rows

_NO_TRAITS = Traits()
_traits: dict[Callable[..., Any], Traits] = {}


def traits_of(flow: Callable[..., Any]) -> Traits:
    """What is known of a flow."""
    return _traits.get(flow, _NO_TRAITS)


def look(flow: F) -> F:
    """Marks a flow that changes nothing."""
    _traits[flow] = structs.replace(traits_of(flow), looks=True)
    return flow


def bounded(seconds: float) -> Callable[[F], F]:
    """Marks a flow whose statements may each take this long on the server, as they go through many rows."""

    def register(flow: F) -> F:
        _traits[flow] = structs.replace(traits_of(flow), seconds=seconds)
        return flow

    return register


def repeated_by(repeat: F) -> Callable[[F], F]:
    """Names the flow to run in place of this one once an earlier try may have been committed.

    It recognises what that try wrote by an id that the caller chose: the job's, or the token of a claim.
    """

    def register(flow: F) -> F:
        _traits[flow] = structs.replace(traits_of(flow), repeat=repeat)
        return flow

    return register


def repeat_of(flow: F) -> F:
    """What to run when the outcome of an earlier try is unknown: most flows can simply be run again."""
    return cast("F", traits_of(flow).repeat or flow)


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
    with open(os.path.join(SQL, f"{name}.{dialect}.sql"), encoding="utf-8") as file:
        return file.read()


@cache
def texts(name: str, dialect: Dialect, style: Style, schema: str, has_clock: bool = False) -> tuple[Text, ...]:
    """The statements of a file, rendered for a driver. PostgreSQL files hold one, SQLite files a few."""
    text = with_channels(shared_parts(source(name, dialect), dialect), plain_name(schema))
    text = in_schema(text, dialect, schema)
    for word, moment in MOMENTS[dialect, has_clock].items():
        text = text.replace(word, moment)
    return tuple(render(part, style) for part in split(text))


def shared_parts(text: str, dialect: Dialect) -> str:
    """A text with what the statements that claim share."""
    for word, parts in (("{claimed}", CLAIMED), ("{leased}", LEASED), ("{room}", ROOM)):
        text = text.replace(word, parts[dialect])
    return text


def with_channels(text: str, schema: str) -> str:
    """A text with the names of the channels that its statements notify. Names of schemas hold no quotes."""
    return text.replace("{queued_channel}", f"'{schema}.queued'").replace("{jobs_channel}", f"'{schema}.jobs'")


def plain_name(schema: str) -> str:
    """The name of a schema without its quotes."""
    return schema.strip('"')


def values(query: Query, clock: Clock | None) -> dict[str, Any]:
    """The parameters of a statement, with what the clock of the store shows, if it has one."""
    return query.params if clock is None else {**query.params, "now": clock()}


def in_schema(text: str, dialect: Dialect, schema: str) -> str:
    """A text with the names of its tables: in a schema, or, where there are none, with a prefix of their own."""
    return text.replace("{schema}.", f"{schema}_") if dialect == "sqlite" else text.replace("{schema}", schema)


# Comments, strings, quoted identifiers and casts are passed over; what is left of colons are parameters.
_TOKEN = re.compile(
    r"""(?P<comment>--[^\n]*|/\*.*?\*/)|(?P<string>'(?:[^']|'')*'|"(?:[^"]|"")*"|\$(?P<tag>\w*)\$.*?\$(?P=tag)\$)"""
    r"""|(?P<cast>::)|:(?P<name>[a-z_]+)|(?P<percent>%)|(?P<end>;)""",
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
        shown = {"pyformat": f"%({name})s", "dollar": f"${names.index(name) + 1}", "qmark": "?"}
        return shown.get(style, f":{name}")

    return Text(_TOKEN.sub(replaced, text), tuple(names))


def _literal(text: str, style: Style) -> str:
    """A piece of the statement that is no parameter, with what the driver would misread in it escaped."""
    if style == "pyformat":
        return text.replace("%", "%%")
    return text.replace(":", r"\:") if style == "alchemy" else text
