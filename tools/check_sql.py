"""Check that statements for PostgreSQL keep to what distributed engines accept: Citus, CockroachDB, YugabyteDB.

Read are `_store/sql/*/*.postgres.sql` and the migrations, the bodies of functions included. The rules:

- clock: no `{now}`, nor any function that tells the time, inside CASE or COALESCE. Citus calls such a function on the
  coordinator, and refuses to where a condition decides whether it is called at all.
- returning: no function that is not immutable in a RETURNING list. `extract` and `date_part` count, as they are stable
  for a timestamptz, and so do our own functions. Return the column, and compute in an outer SELECT.
- twice: no two modifications of one table in one statement, which CockroachDB refuses and Citus gets wrong.
- advisory: no advisory locks: CockroachDB accepts them without effect. Lock a row.

One more rule is for all SQL files, those for SQLite and the shared parts included:

- width: no line of more than 120 columns.

Words inside strings are not looked at: statements that a function puts together are up to who writes them.
"""

from __future__ import annotations

import re
import sys
from collections.abc import Iterable, Iterator
from pathlib import Path
from typing import NamedTuple

from relet._store.fragments import SHARED, shared

WIDTH = 120  # columns

STORE = Path(__file__).parents[1] / "src" / "relet" / "_store"

#: The columns that claims return, spelled in `_store/query.py`. A test has PostgreSQL check that it is immutable.
CLAIMED = "{claimed}"

CLOCKS = {
    *("{now}", "{given}", "{waited}", "now", "statement_timestamp", "clock_timestamp", "transaction_timestamp"),
    *("timeofday", "current_timestamp", "current_date", "current_time", "localtimestamp", "localtime"),
}
NOT_IMMUTABLE = CLOCKS | {
    *("random", "nextval", "currval", "lastval", "setval", "gen_random_uuid", "uuidv4", "uuidv7", "pg_notify"),
    *("set_config", "current_setting", "extract", "date_part", "date_trunc", "to_char", "age", "pg_backend_pid"),
    *("txid_current", "pg_current_xact_id", "pg_sleep", "row_to_json", "to_json", "to_jsonb", "json_build_object"),
}
WITHOUT_PARENTHESES = {"current_timestamp", "current_date", "current_time", "localtimestamp", "localtime"}

_TOKEN = re.compile(
    r"""(?P<skip>\s+|--[^\n]*|/\*.*?\*/|\$\$|'(?:[^']|'')*')|(?P<word>(?:\{[\w.]+\}|"[^"]+"|[A-Za-z_]\w*)(?:\.(?:"[^"]+"|\w+))*)"""
    r"""|(?P<other>.)""",
    re.DOTALL,
)


class Token(NamedTuple):
    text: str
    line: int


class Problem(NamedTuple):
    """A place where a rule is broken."""

    line: int
    rule: str
    what: str


Statement = list[Token]


def statements(text: str) -> list[Statement]:
    """The words and signs of each statement, also of those in a function's body."""
    found: list[Statement] = [[]]
    line = 1
    for match in _TOKEN.finditer(text):
        if match["other"] == ";":
            found.append([])
        elif not match["skip"]:
            found[-1].append(Token(match.group().lower(), line))
        line += match.group().count("\n")
    return [statement for statement in found if statement]


def problems(text: str) -> list[Problem]:
    """Every place in a script where a rule is broken."""
    found: list[Problem] = []
    for statement in statements(text):
        for rule in (_clock, _returning, _twice, _advisory):
            found += rule(statement)
    return sorted(found)


def long_lines(text: str) -> list[Problem]:
    """Every line of a file that has more than `WIDTH` columns."""
    return [
        Problem(number, "width", f"{len(line)} columns, at most {WIDTH} are allowed")
        for number, line in enumerate(text.split("\n"), 1)
        if len(line) > WIDTH
    ]


def _clock(statement: Statement) -> Iterator[Problem]:
    """Open brackets are kept on a stack, so that what is inside CASE or COALESCE is known."""
    opened: list[str] = []
    before = ""
    for word, line in statement:
        if word in ("case", "("):
            opened.append("coalesce" if before == "coalesce" and word == "(" else word)
        elif word in ("end", ")") and opened:
            opened.pop()
        elif word in CLOCKS and {"case", "coalesce"} & set(opened):
            yield Problem(line, "clock", f"{word} inside {'case' if 'case' in opened else 'coalesce'}")
        before = word


def _returning(statement: Statement) -> Iterator[Problem]:
    for place, (word, _) in enumerate(statement):
        if word == "returning":
            listed = _listed(statement[place + 1 :])
            after = [token.text for token in listed[1:]] + [""]
            yield from (
                Problem(line, "returning", f"{name} in RETURNING")
                for (name, line), following in zip(listed, after, strict=True)
                if _is_not_immutable(name, following)
            )


def _with_shared_parts(text: str) -> str:
    """The rules hold for what statements share, too. Its lines are joined: problems are found where they are used."""
    for name in SHARED:
        if f"{{{name}}}" != CLAIMED:  # the rule for RETURNING knows it by its name
            text = text.replace(f"{{{name}}}", shared(name, "postgres").replace("\n", " "))
    return text


def _listed(rest: Statement) -> Statement:
    """The tokens of a RETURNING list: up to the end of the statement, of its brackets, or to INTO."""
    depth = 0
    for place, (word, _) in enumerate(rest):
        depth += (word == "(") - (word == ")")
        if depth < 0 or (depth == 0 and word == "into"):
            return rest[:place]
    return rest


def _is_not_immutable(name: str, following: str) -> bool:
    if name == CLAIMED:
        return False
    if (name.startswith("{") and "." not in name) or name in WITHOUT_PARENTHESES:
        return True
    return following == "(" and (name in NOT_IMMUTABLE or name.startswith("{schema}."))


def _twice(statement: Statement) -> Iterator[Problem]:
    seen: set[str] = set()
    for table, line in _modified(statement):
        if table in seen:
            yield Problem(line, "twice", f"{table} is modified twice in one statement")
        seen.add(table)


def _modified(statement: Statement) -> Iterator[Token]:
    """The tables that a statement modifies, once for each time. `for update` and `do update` do not count."""
    words = ["", *(token.text for token in statement), "", ""]
    for place, (word, line) in enumerate(statement):
        before, one, two = words[place], words[place + 2], words[place + 3]
        if word == "update" and before not in ("for", "key", "do", "on"):
            yield Token(two if one == "only" else one, line)
        elif (word, one) in (("insert", "into"), ("delete", "from"), ("merge", "into")):
            yield Token(two, line)


def _advisory(statement: Statement) -> Iterable[Problem]:
    return [
        Problem(line, "advisory", f"{word} is no lock on every engine")
        for word, line in statement
        if word.startswith(("pg_advisory", "pg_try_advisory"))
    ]


def main() -> int:
    files = sorted([*STORE.glob("sql/*/*.sql"), *STORE.glob("migrations/*.sql")])
    found = [(file, one) for file in files for one in _problems_of(file)]
    for file, (line, rule, what) in found:
        print(f"{file.relative_to(STORE.parents[2])}:{line}: {rule}: {what}")
    print(f"{len(files)} files with SQL, {len(found)} problems")
    return 1 if found else 0


def _problems_of(file: Path) -> list[Problem]:
    """The shared parts are no statements: they are checked for their width here, and where they are used."""
    text = file.read_text("utf-8")
    found = long_lines(text)
    if file.name.endswith(".postgres.sql") and file.parent.name != "shared":
        found += problems(_with_shared_parts(text))
    return sorted(found)


if __name__ == "__main__":
    sys.exit(main())
