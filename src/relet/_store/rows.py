"""The variant `rows`: the same tables and statements for engines that spread one schema over several machines.

Such an engine has no partitions that can be dropped, no notifications, functions or physical row addresses that it
shares with PostgreSQL, or has them only in part. The variant is made from the one text for PostgreSQL:

- a migration or statement that has a file `NAME.rows.sql` is taken from there. Such a file may hold several statements;
- all others are rewritten by the rules below, one for each construct.

So a column, a condition or a new statement is still written once. `tools/check_engines.py` checks that what comes out
keeps to what the documentation of these engines lists, and names the page for each construct.

Differences that users can notice: jobs that are over are pruned one by one, clients and workers poll, there is no SQL
function `enqueue`, and the order of jobs is the time at which they were inserted: see docs/guides/distributed.md.
"""

from __future__ import annotations

import re
from collections.abc import Callable
from functools import cache

#: By the name of an argument of make_interval.
_UNITS = {"secs": "1 second", "days": "1 day"}

#: The order of jobs. A sequence alone would be out of order: engines hand out its numbers in blocks, one for each
#: connection or machine. The sequence orders jobs of one connection within the same microsecond.
NEXT_SEQ = "((extract(epoch from clock_timestamp()) * 1000000)::bigint * 4096 + nextval('{schema}.job_seq') % 4096)"

#: The smallest id of a given time, as the function first_id of PostgreSQL returns it.
_FIRST_ID = "(lpad(to_hex((extract(epoch from {}) * 1000)::bigint), 12, '0') || repeat('0', 20))::uuid"


def rewritten(text: str) -> str:
    """A text for PostgreSQL without the constructs that only PostgreSQL has."""
    text = _calls(text, "make_interval", _interval)
    text = _calls(text, "{schema}.first_id", _FIRST_ID.format)
    text = _calls(text, "pg_notify", lambda _: "null::text")
    text = _calls(text, "{schema}.wake", lambda _: "0")
    text = text.replace("nextval('{schema}.job_seq')", NEXT_SEQ)
    text = re.sub(r' collate "(?:C|POSIX)"', "", text)
    return re.sub(r"\bselect from\b", "select 1 from", text)


def statement(text: str) -> str:
    """Rows are addressed by their id, not by the place where they are stored. JSON is stored as text.

    The connection adds `:margin`: how many seconds the clocks of the nodes may be apart.
    """
    text = text.replace("{late}", "({now} - :margin::float8 * interval '1 second')")
    text = re.sub(r"\bctid\b", "id", rewritten(_with_one_moment(text)))
    text = re.sub(r"json_each\((?!:)([\w.]+)\)", r"json_each(\1::json)", text)
    return re.sub(r"::json\b(\[\])?(?!\))", r"::text\1", text)


def _with_one_moment(text: str) -> str:
    """A statement that inserts the time and returns it. Citus reads the clock of the coordinator for the one, and that
    of the node for the other."""
    if "date_part('epoch', {now})" not in text or "insert into" not in text:
        return text
    text = text.replace("{now}", "(select moment from clock)")
    return re.sub(r"^with ", "with clock as materialized (select {now} as moment),\n", text, count=1, flags=re.M)


def _interval(argument: str) -> str:
    unit, _, number = argument.partition(" => ")
    return f"(({number}) * interval '{_UNITS[unit]}')"


def _calls(text: str, function: str, replacement: Callable[[str], str]) -> str:
    """Replace each call of a function. The replacement is made from what its brackets hold."""
    begun = 0
    while (found := text.find(f"{function}(", begun)) >= 0:
        first = found + len(function) + 1
        last = _closing(text, first)
        text = text[:found] + replacement(text[first:last]) + text[last + 1 :]
        begun = found
    return text


def _closing(text: str, start: int) -> int:
    """Where the bracket is that closes the one before `start`."""
    depth, end = 1, start
    while depth:
        depth += {"(": 1, ")": -1}.get(text[end], 0)
        end += 1
    return end - 1


# Migrations

_TABLE = re.compile(r"create table|alter table")
#: Statements that have no place in the variant: functions, their rights, and the partitions that one of them makes.
_LEFT_OUT = re.compile(
    r"create (?:or replace )?function|alter function|revoke all on function|select \{schema\}\.make_partitions"
    # Made again by a later migration: an engine that changes schemas in steps cannot drop and make an index at once.
    r"|drop index \{schema\}\.jobs_group$"
    r"|create index jobs_group on \{schema\}\.jobs \(queue, suspect, group_key, rank, seq\)"
)
_CONDITION = re.compile(r"create function \{schema\}\.is_consistent\(.*?\breturn (.*?);\s*end \$\$", re.DOTALL)
_STORAGE = re.compile(r"\) with \([^()]*\)$")


def migration(statements: list[str], everything: str) -> list[str]:
    """The statements of a migration. `everything`: the texts of all migrations, where functions are defined."""
    return [_changed(statement, everything) for statement in statements if not _LEFT_OUT.match(statement)]


def _changed(statement: str, everything: str) -> str:
    text = rewritten(statement)
    if _TABLE.match(text):
        text = _STORAGE.sub(")", text.replace(" partition by range (id)", ""))
        text = _calls(text, "{schema}.is_consistent", lambda _: _condition(everything))
        text = re.sub(r"(?<=\s)json(?=[\s,;]|$)", "text", text)
    return text.replace("null::json", "null::text")


@cache
def _condition(everything: str) -> str:
    """The condition that the function of this name returns: its parameters are the columns of the same names."""
    found = _CONDITION.search(everything)
    assert found is not None  # migration 1 defines it
    return re.sub(r"--[^\n]*", "", found[1])
