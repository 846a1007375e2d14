"""Loads stored databases."""

from __future__ import annotations

import json
import sqlite3
from contextlib import closing
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import psycopg

FOLDER = Path(__file__).parent / "databases"


@dataclass(frozen=True)
class Stored:
    """A database of one schema version. `migration`: the digest of the migration that made this version."""

    version: int
    dialect: str

    def __str__(self) -> str:
        return f"{self.version:04}-{self.dialect}"

    @property
    def _file(self) -> Path:
        return FOLDER / f"{self.version:04}.{self.dialect}.sql"

    @property
    def facts(self) -> dict[str, Any]:
        found: dict[str, Any] = json.loads(self._file.with_suffix(".json").read_text())
        return found

    def load(self, where: str) -> None:
        """Load it into an empty database: the path of a file, or the URL of a server."""
        if self.dialect == "sqlite":
            with closing(sqlite3.connect(where)) as connection:
                connection.executescript(self._file.read_text())
        else:
            with psycopg.connect(where, autocommit=True) as server:
                server.execute(self._file.read_text().encode())
                if self.version >= 3:  # a worker would recognise the copy, and pause its queues
                    server.execute("update relet.pulse set tables = null")


def all_stored() -> list[Stored]:
    found = sorted(FOLDER.glob("*.sql"))
    return [Stored(int(file.name[:4]), file.suffixes[0][1:]) for file in found]
