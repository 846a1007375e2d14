"""One statement for many schemas of a PostgreSQL database: a worker for hundreds of tenants asks about all of them."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from functools import lru_cache
from typing import TypeVar

from .query import Flow, Query, Row, Text, texts

R = TypeVar("R")

KEPT = 256  # texts of statements


def first_query(flow: Flow[R]) -> Query:
    """The statement of a flow that has one."""
    step = next(flow)
    if not isinstance(step, Query):
        raise TypeError(f"{step!r}: only a flow of one statement can run in many schemas")
    return step


def result_of(flow: Flow[R], rows: list[Row]) -> R:
    """The result of a flow whose only statement has returned these rows."""
    try:
        flow.send(rows)
    except StopIteration as end:
        result: R = end.value
        return result
    finally:
        flow.close()
    raise TypeError("a flow of several statements cannot run in many schemas")


@lru_cache(KEPT)
def combined(name: str, schemas: tuple[str, ...], has_clock: bool) -> Text:
    """The statement in each of these schemas. Before the columns of a row stands the number of its schema.

    Data-modifying statements stand in WITH, which PostgreSQL runs even if no query reads from them.
    """
    each = [texts(name, "postgres", "dollar", schema, has_clock)[0] for schema in schemas]
    parts = ", ".join(f"q{number} as ({text.sql})" for number, text in enumerate(each))
    numbers = range(len(each))
    rows = " union all ".join(f"select {number}, q{number}.* from q{number}" for number in numbers)  # noqa: S608
    return Text(f"with {parts} {rows}", each[0].names)


def by_schema(rows: Sequence[Row], number: int) -> list[list[Row]]:
    """The rows of a combined statement, for each of its schemas."""
    found: list[list[Row]] = [[] for _ in range(number)]
    for index, *row in rows:
        found[index].append(tuple(row))
    return found


def run_each(execute: Callable[[Query], list[Row]], flows: Sequence[Flow[R]]) -> list[R]:
    """Run flows of the same statement together."""
    first, *_ = [first_query(flow) for flow in flows]  # all of them: each is sent its rows later
    found = by_schema(execute(first), len(flows))
    return [result_of(flow, rows) for flow, rows in zip(flows, found, strict=True)]
