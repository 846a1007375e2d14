"""Check that the variant `rows` keeps to what the documentation of YugabyteDB and CockroachDB lists.

Read is what these engines are sent: each migration and each statement, as `_store/rows.py` rewrites them. Statements of
the doctor are left out: where the server lacks what one of them asks for, that check is a finding. So are those about
streaming standbys, which are PostgreSQL's.

`RULES` names constructs that at least one engine refuses or understands differently, with the page that says so. Every
function must be in `FUNCTIONS`. No server of either engine is needed, and none has been used to make these lists.
"""

from __future__ import annotations

import re
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import NamedTuple

from relet._store import migrate
from relet._store.fragments import SQL
from relet._store.query import texts

COCKROACH = "https://www.cockroachlabs.com/docs/v26.2"
YUGABYTE = "https://docs.yugabyte.com/stable"


class Rule(NamedTuple):
    """A construct that must not occur, and the page that says why."""

    name: str
    pattern: str
    source: str


RULES = (
    Rule("address", r"\b(ctid|xmin|xmax|cmin|cmax)\b", "https://github.com/yugabyte/yugabyte-db/issues/24843"),
    Rule("notify", r"\b(listen|unlisten|notify)\b|pg_notify\(", f"{COCKROACH}/sql-feature-support (not listed)"),
    Rule("partition", r"\bpartition (by|of)\b|\b(at|de)tach partition\b", f"{COCKROACH}/partitioning"),
    Rule("storage", r"\) with \(|\bset \(autovacuum|\bset \(fillfactor", f"{COCKROACH}/with-storage-parameter"),
    Rule("function", r"\bcreate (or replace )?(function|procedure|trigger)\b", f"{COCKROACH}/known-limitations"),
    Rule("planner", r"\bset (local )?(enable_\w+|plan_cache_mode|jit)\b", f"{COCKROACH}/session-variables"),
    Rule("advisory", r"\bpg_(try_)?advisory\w*", f"{COCKROACH}/postgresql-compatibility (no-op)"),
    Rule("named argument", r"=>", f"{COCKROACH}/known-limitations (routines)"),
    Rule("collation", r"\bcollate\b", f"{COCKROACH}/collate (Unicode locales only)"),
    Rule("lock table", r"\block table\b", f"{YUGABYTE}/explore/ysql-language-features/postgresql-compatibility"),
    Rule("empty list", r"\bselect from\b", "a list of columns in both engines' grammars"),
    Rule("stored json", r"^\s+\w+\s+jsonb?\b", f"{COCKROACH}/jsonb (json is jsonb: the text changes)"),
    Rule("division", r"\bcount\([^/;]*/ \d+(?![\d.])", f"{COCKROACH}/postgresql-compatibility (decimal result)"),
    Rule("deferrable", r"\bdeferrable\b|\bexclude using\b", f"{YUGABYTE}/develop/postgresql-compatibility"),
    Rule("temporary", r"\bcreate temp", f"{COCKROACH}/temporary-tables (experimental)"),
)

#: Both engines document them: CockroachDB on `functions-and-operators`; YugabyteDB has those of PostgreSQL 15.
FUNCTIONS = {
    *("abs", "array_position", "bool_or", "ceil", "chr", "clock_timestamp", "coalesce", "count", "current_setting"),
    *("date_part", "extract", "floor", "generate_series", "greatest", "json_agg", "json_array_elements_text"),
    *(
        "json_each",
        "json_to_recordset",
        "least",
        "left",
        "lower",
        "lpad",
        "max",
        "min",
        "nextval",
        "nullif",
        "position",
    ),
    *("repeat", "set_config", "split_part", "statement_timestamp", "string_agg", "sum", "to_hex", "to_regclass"),
    "to_regnamespace",
    *("to_timestamp", "transaction_timestamp", "unnest"),
}
#: Words before a bracket that call nothing.
_NO_CALL = {
    *("all", "and", "any", "array", "as", "by", "check", "conflict", "distinct", "else", "exists", "from", "in", "key"),
    *("materialized", "not", "on", "or", "over", "returning", "select", "then", "union", "using", "values", "when"),
    *("where", "enum", "is", "offset", "limit", "like"),
}
_CALL = re.compile(r"(?<![\w.\"])([a-z_][a-z_0-9]*)( ?)\(")
_STRING = re.compile(r"'[^']*'")
_MODIFIES = re.compile(r"\b(?:insert into|delete from|(?<!for )(?<!do )(?<!key )update) ([\w.\"]+)")
_INNER_WRITE = re.compile(r"\(\s*with\b[^;]*?\b(insert into|delete from)", re.DOTALL)


class Problem(NamedTuple):
    """The lines that break a rule, and the construct that the engines refuse."""

    where: str
    rule: str
    what: str


def problems(where: str, sql: str) -> Iterator[Problem]:
    """Every rule that a statement breaks."""
    plain = _STRING.sub("''", sql.lower())
    for rule in RULES:
        for found in re.finditer(rule.pattern, plain, re.MULTILINE):
            yield Problem(where, rule.name, f"{found.group().strip()}: see {rule.source}")
    yield from _unknown_functions(where, plain)
    tables = _MODIFIES.findall(plain)
    for table in sorted({one for one in tables if tables.count(one) > 1}):
        yield Problem(where, "twice", f"{table} is modified twice: see {COCKROACH}/known-limitations")
    if _INNER_WRITE.search(plain):
        yield Problem(where, "inner write", f"WITH that writes, below the top: {COCKROACH}/common-table-expressions")


def _unknown_functions(where: str, plain: str) -> Iterator[Problem]:
    """Names of a WITH, of a table or of columns may stand before a bracket too: `k (id)`, `as b(id uuid)`."""
    defined = set(re.findall(r"(?:with|with recursive|\),|as|join|into [\w.\"]+) (\w+) ?\(", plain))
    for name, blank in _CALL.findall(plain):
        if not blank and name not in FUNCTIONS | _NO_CALL | defined and not _is_alias(plain, name):
            yield Problem(where, "function", f"{name} is not in the list of functions that both engines have")


def _is_alias(plain: str, name: str) -> bool:
    return bool(re.search(rf"\) {name}\(|\bas {name}\(|,\s*{name}\(.*\) as|\brecursive {name}\(|\),\s*{name}\(", plain))


def statements() -> Iterator[tuple[str, str]]:
    """The statements of the variant, by the name of the migration or of the statement."""
    for version in migrate.migrations("rows"):
        for sql in migrate.unfilled("rows", version):
            yield f"migrations/{version:04}", sql
    for file in sorted(Path(SQL).glob("*/*.postgres.sql")):
        name = f"{file.parent.name}/{file.name.removesuffix('.postgres.sql')}"
        if file.parent.name not in ("shared", "doctor", "replica"):
            for text in texts(name, "rows", "dollar", '"s"'):
                yield name, text.sql


def main() -> int:
    checked = list(statements())
    found = [problem for name, sql in checked for problem in problems(name, sql)]
    for where, rule, what in found:
        print(f"{where}: {rule}: {what}")
    print(f"{len(checked)} statements of the variant rows, {len(found)} problems")
    return 1 if found else 0


if __name__ == "__main__":
    sys.exit(main())
