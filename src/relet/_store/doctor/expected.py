"""What a schema must hold: read from the migrations themselves, so that it cannot fall behind them."""

from __future__ import annotations

import re
import sqlite3
from collections.abc import Iterable
from contextlib import closing
from dataclasses import dataclass, field

from .. import migrate
from ..query import in_schema, split

_MADE = re.compile(r"create (?:unique )?(table|index|view|function|sequence) (?:if not exists )?(?:\{schema\}\.)?(\w+)")
_DROPPED = re.compile(r"drop (table|index|view|function|sequence) (?:if exists )?\{schema\}\.(\w+)")
_UNIQUE = re.compile(r"^\s+\w+ .*\bunique\b")
_OPTIONS = re.compile(r"\)\s*with \(([^()]*)\)\s*$")


@dataclass
class Objects:
    """What migrations make, as (kind, name). `how`: the statements; `options`: storage parameters of tables."""

    names: set[tuple[str, str]] = field(default_factory=set)
    how: dict[str, str] = field(default_factory=dict)
    options: dict[str, dict[str, str]] = field(default_factory=dict)

    def of(self, kind: str) -> list[str]:
        """The names of one kind."""
        return sorted(name for of, name in self.names if of == kind)


def in_postgres(quoted: str, version: int) -> Objects:
    """What the migrations up to a version make in a schema."""
    texts = [text for number, text in migrate.migrations("postgres").items() if number <= version]
    return made_by((statement for text in texts for statement in split(text)), quoted)


def made_by(statements: Iterable[str], quoted: str) -> Objects:
    """What is there after these statements. The primary key of a table is an index of its own."""
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
    """What PostgreSQL makes of a table's columns by itself, and how it names that."""
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
    """Names and definitions of what the migrations up to a version make in a file: made in memory, and looked at."""
    with closing(sqlite3.connect(":memory:")) as connection:
        for number, text in migrate.migrations("sqlite").items():
            if number <= version:
                for statement in split(in_schema(text, "sqlite", prefix)):
                    connection.execute(statement)
        return dict(connection.execute("select name, sql from sqlite_master where sql is not null").fetchall())
