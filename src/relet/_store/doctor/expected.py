"""The objects that a schema must have, read from the migrations themselves, so that the two cannot differ."""

from __future__ import annotations

import re
import sqlite3
from collections.abc import Iterable
from contextlib import closing
from dataclasses import dataclass, field

from .. import migrate
from ..fragments import Dialect
from ..query import in_schema, split

_MADE = re.compile(r"create (?:unique )?(table|index|view|function|sequence) (?:if not exists )?(?:\{schema\}\.)?(\w+)")
_DROPPED = re.compile(r"drop (table|index|view|function|sequence) (?:if exists )?\{schema\}\.(\w+)")
_UNIQUE = re.compile(r"^\s+\w+ .*\bunique\b")
_OPTIONS = re.compile(r"\)\s*with \(([^()]*)\)\s*$")


@dataclass
class Objects:
    """The objects that migrations make.

    `names`: pairs of kind and name. `how`: the statement that makes each. `options`: storage parameters of tables.
    """

    names: set[tuple[str, str]] = field(default_factory=set)
    how: dict[str, str] = field(default_factory=dict)
    options: dict[str, dict[str, str]] = field(default_factory=dict)

    def of(self, kind: str) -> list[str]:
        """The names of one kind."""
        return sorted(name for of, name in self.names if of == kind)


def in_postgres(quoted: str, version: int, dialect: Dialect = "postgres") -> Objects:
    """The objects that the migrations up to a version make in a PostgreSQL schema."""
    numbers = [number for number in migrate.migrations(dialect) if number <= version]
    return made_by((statement for number in numbers for statement in migrate.unfilled(dialect, number)), quoted)


def made_by(statements: Iterable[str], quoted: str) -> Objects:
    """The objects that exist after these statements. The primary key of a table counts as an index."""
    made_before = ("migrations", "migration_lock")
    found = Objects({(kind, name + end) for name in made_before for kind, end in (("table", ""), ("index", "_pkey"))})
    for statement in statements:
        if gone := _DROPPED.match(statement):
            found.names.discard((gone[1], gone[2]))
        elif made := _MADE.match(statement):
            kind, name = made[1], made[2]
            found.names.add((kind, name))
            found.how[name] = " ".join(statement.replace("{schema}", quoted).split())
            if kind == "table":
                found.names |= _made_along(name, statement)
            if options := _OPTIONS.search(statement):
                found.options[name] = dict(map(_option, options[1].split(",")))
    return found


def _made_along(table: str, statement: str) -> set[tuple[str, str]]:
    """The indexes and sequences that PostgreSQL makes for a table's columns, by the names that it gives them."""
    made = {("index", f"{table}_pkey")} if "primary key" in statement else set()
    for line in statement.splitlines():
        column = line.split()[0] if line.split() else ""
        if _UNIQUE.search(line):
            made.add(("index", f"{table}_{column}_key"))
        if "as identity" in line:
            made.add(("sequence", f"{table}_{column}_seq"))
    return made


def _option(text: str) -> tuple[str, str]:
    name, _, value = text.partition("=")
    return name.strip(), value.strip()


def in_sqlite(prefix: str, version: int) -> dict[str, str]:
    """Names and definitions of the objects that the migrations up to a version make in a file.

    Found by applying the migrations to a database in memory.
    """
    with closing(sqlite3.connect(":memory:")) as connection:
        for number, text in migrate.migrations("sqlite").items():
            if number <= version:
                for statement in split(in_schema(text, "sqlite", prefix)):
                    connection.execute(statement)
        return dict(connection.execute("select name, sql from sqlite_master where sql is not null").fetchall())
