"""The parts that statements share, by the word in braces that stands for each of them in a SQL file.

`{job}`, `{kept}` and `{filter}` are made from the fields of `Job` and from `FILTERS`: a new column or filter needs no
change of any statement.

`{job}`: the columns of a job, as `mapping.job` reads them.
`{kept}`: the columns that a row keeps when it moves from `jobs` to `finished`; `{j.kept}`: those of table `j`.
`{filter}`: the condition of all filters.

The others are files in `sql/shared`:

`{claimed}`: the columns that a claiming statement returns for each job; `mapping.claimed` reads them. Fields that most
jobs do not have are returned as one list, or as null. On PostgreSQL it calls no function that depends on the session,
because engines that distribute rows refuse those in RETURNING.
`{group_limited}`: whether a row has a group, and its queue has limits by group. SQLite does not need it.
`{leased}`: the columns that a claim sets.
`{locked}`: the columns that the action of an operator depends on; `control._Locked.of` reads them.
`{running}`: the columns that a decision about a running job depends on; `mapping.running` reads them.
`{room}`: the queues that may be served, in the order that the caller asked for (sorted, because the planner would join
them in another order): not paused ones, and, unless the limits are locked, only those before the first queue that has a
limit.
`{startable}`: whether a claim may take a job: it has no `start_by`, has started before, or that time is ahead.
"""

from __future__ import annotations

import os
from functools import cache
from typing import Literal

from .._core.filters import FILTERS, Comparison
from .._core.job import DETAIL_FIELDS, END_FIELDS, LIVE_FIELDS, Job

#: "rows": the statements for PostgreSQL as `rows.py` rewrites them.
Dialect = Literal["postgres", "sqlite", "rows"]


SQL = os.path.join(os.path.dirname(__file__), "sql")  # not pathlib: it takes 4 ms to import

SHARED = ("claimed", "group_limited", "leased", "locked", "running", "room", "startable")

#: Fields of a job whose column has a different name.
COLUMNS = {"group": "group_key", "unique": "unique_key", "payload_json": "payload", "result_json": "result"}
#: How PostgreSQL returns a column, by the annotation of its field, so that every driver gets plain types.
_RETURNED = {"datetime": "extract(epoch from {})::float8", "Progress": "{}::text", "State": "{}::text"}
_TEXT = ("id", "chain", "payload_json", "result_json", "tags", "rerun_of")  # of type uuid or json

_COMPARED: dict[str, dict[Comparison, str]] = {
    "postgres": {
        "one_of": "(:{p}::text is null or {c} = any(array("
        "select json_array_elements_text(:{p}::text::json)::{{schema}}.job_state)))",
        "equals": "(:{p}::text is null or {c} = :{p}::text)",
        "contains": "(:{p}::text is null or position(lower(:{p}::text) in lower({c})) > 0)",
        "from": "(:{p}::float8 is null or {c} >= to_timestamp(:{p}::float8))",
        "before": "(:{p}::float8 is null or {c} < to_timestamp(:{p}::float8))",
        "tagged": "(:{p}::text is null or exists ("
        "select from {{schema}}.tags t where t.tag = :{p}::text and t.job = {c}))",
        "has": "(:{p}::text is null or not exists (select from json_each(:{p}::text::json) w where not exists ("
        "select from json_each({c}) h where h.key = w.key and h.value::jsonb = w.value::jsonb)))",
    },
    "sqlite": {
        "one_of": "(:{p} is null or {c} in (select value from json_each(:{p})))",
        "equals": "(:{p} is null or {c} = :{p})",
        "contains": "(:{p} is null or instr(lower({c}), lower(:{p})) > 0)",
        "from": "(:{p} is null or {c} >= :{p})",
        "before": "(:{p} is null or {c} < :{p})",
        "tagged": "(:{p} is null or exists (select 1 from {{schema}}.tags t where t.tag = :{p} and t.job = {c}))",
        "has": "(:{p} is null or not exists (select 1 from json_each(:{p}) w where not exists ("
        "select 1 from json_each({c}) h where h.key = w.key and h.type = w.type and h.value is w.value)))",
    },
}
_RANGE: dict[str, str] = {
    "postgres": "id >= coalesce(:lowest::text, '00000000-0000-0000-0000-000000000000')::uuid"
    " and id < coalesce(:cursor::text, 'ffffffff-ffff-ffff-ffff-ffffffffffff')::uuid",
    "sqlite": "id >= coalesce(:lowest, '') and id < coalesce(:cursor, 'g')",  # no id is as great as 'g'
}


def with_fragments(text: str, dialect: Dialect) -> str:
    """Fill in the shared parts of a statement."""
    dialect = "postgres" if dialect == "rows" else dialect
    for name in SHARED:
        if f"{{{name}}}" in text:
            text = text.replace(f"{{{name}}}", shared(name, dialect))
    for alias in ("", "j."):
        text = text.replace(f"{{{alias}kept}}", ", ".join(alias + column for column in kept(dialect)))
    return text.replace("{job}", _job(dialect)).replace("{filter}", _filter(dialect))


@cache
def shared(name: str, dialect: Dialect) -> str:
    """The text of a file in `sql/shared`."""
    with open(os.path.join(SQL, "shared", f"{name}.{dialect}.sql"), encoding="utf-8") as file:
        return file.read().strip()


@cache
def _job(dialect: Dialect) -> str:
    """The columns of a job in the order of the fields of `Job`; `mapping.job` reads them."""
    return ", ".join(_returned(name, str(kind), dialect) for name, kind in job_fields().items())


@cache
def kept(dialect: Dialect) -> list[str]:
    """The columns that a row keeps when its job ends, in the order of the fields of `Job`."""
    return [_column(name, dialect) for name in job_fields() if name not in LIVE_FIELDS + END_FIELDS + DETAIL_FIELDS]


@cache
def job_fields() -> dict[str, str]:
    """The fields of a job that are stored, with their annotations."""
    return {name: str(kind) for name, kind in Job.__annotations__.items() if name != "existing"}


def _column(name: str, dialect: Dialect) -> str:
    column = COLUMNS.get(name, name)
    # PostgreSQL would read the unquoted word as the function of that name.
    return f'"{column}"' if dialect == "postgres" and column == "position" else column


def _returned(name: str, kind: str, dialect: Dialect) -> str:
    column = _column(name, dialect)
    if dialect == "sqlite":
        return column
    if name in _TEXT:
        return f"{column}::text"
    return _RETURNED.get(kind.partition(" ")[0], "{}").format(column)


@cache
def _filter(dialect: Dialect) -> str:
    """The condition of all filters, and the range of ids that a page covers."""
    compared = _COMPARED[dialect]
    conditions = [compared[one.comparison].format(p=name, c=one.column) for name, one in FILTERS.items()]
    return " and ".join([_RANGE[dialect], *conditions])
