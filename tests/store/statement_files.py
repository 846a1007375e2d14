"""The SQL files of the store, by their paths below its folder: `claim/claim.postgres.sql`."""

from __future__ import annotations

from pathlib import Path

from relet._store.fragments import SQL


def statement_files() -> list[str]:
    """All of them but the shared fragments, sorted."""
    found = [file for file in Path(SQL).rglob("*.sql") if file.parent.name != "shared"]
    return sorted(str(file.relative_to(SQL)) for file in found)
