"""Which tenants have tables: schemas beside that of the app, or files beside its file."""

from __future__ import annotations

import glob
import sqlite3
from contextlib import closing, suppress
from typing import TYPE_CHECKING, Any
from urllib.parse import quote

from .._core import validate
from ..errors import InvalidInput

if TYPE_CHECKING:
    import psycopg

SCHEMAS = """
select substr(n.nspname, length(%(prefix)s) + 1) from pg_catalog.pg_namespace n
where starts_with(n.nspname, %(prefix)s) and to_regclass(quote_ident(n.nspname) || '.migration_lock') is not null
order by 1
"""


def schema_of(schema: str, tenant: str) -> str:
    """The schema of a tenant in PostgreSQL."""
    return validate.schema(f"{schema}_{validate.schema(tenant)}")


def file_of(path: str, tenant: str) -> str:
    """The SQLite file of a tenant."""
    return f"{path.removesuffix('.db')}.{validate.schema(tenant)}.db"


def in_database(raw: psycopg.Connection[Any], schema: str) -> list[str]:
    """The tenants of a schema in PostgreSQL."""
    names = [name for (name,) in raw.execute(SCHEMAS.encode(), {"prefix": f"{schema}_"}).fetchall()]
    return [name for name in names if _is_valid(name)]


def beside(path: str, prefix: str) -> list[str]:
    """The tenants of a SQLite file. `prefix`: of Relet's tables."""
    before, after = file_of(path, "x").rsplit("x", 1)
    files = glob.glob(f"{glob.escape(before)}*{glob.escape(after)}")
    found = {file[len(before) : -len(after)]: file for file in files}
    return sorted(name for name, file in found.items() if _is_valid(name) and _has_tables(file, prefix))


def _has_tables(file: str, prefix: str) -> bool:
    address = f"file:{quote(file)}?mode=ro"
    with suppress(sqlite3.DatabaseError), closing(sqlite3.connect(address, uri=True)) as connection:
        table = f"{prefix}_migrations"
        return connection.execute("select 1 from sqlite_master where name = ?", [table]).fetchone() is not None
    return False


def _is_valid(name: str) -> bool:
    try:
        validate.schema(name)
    except InvalidInput:
        return False
    return True
