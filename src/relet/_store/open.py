"""Makes the store that a URL names."""

from __future__ import annotations

import re
from urllib.parse import parse_qsl, unquote

from .._core import validate
from ..errors import InvalidInput, StoreError
from . import tenants
from .replica import Replica
from .sqlite import SQLiteStore
from .store import Store
from .urls import with_option, without_driver

DEFAULT_URL = "sqlite:///relet.db"
_FORMS = (
    "sqlite:///relative.db, sqlite:////absolute/path.db, sqlite:///:memory: or postgresql://user:password@host/database"
)


def open_store(
    url: str,
    *,
    schema: str = "relet",
    tenant: str | None = None,
    connections: int = 10,
    like: Store | None = None,
) -> Store:
    """The store that a URL names, not connected yet. Each tenant has a separate schema, or a separate file.

    With `like`, a store of the same URL, the two share their connections if the database is PostgreSQL.
    """
    if not isinstance(url, str):
        hint = ", or relet.contrib.sqlalchemy.database_url(url)" if hasattr(url, "render_as_string") else ""
        raise InvalidInput(f"a store's URL is a str, not {type(url).__name__}: {_FORMS}{hint}")
    url = without_driver(url)
    scheme, _, rest = url.partition("://")
    if scheme in ("postgres", "postgresql"):
        store = _postgres(url, tenants.schema_of(schema, tenant) if tenant else validate.schema(schema), connections)
        return store if like is None else store.with_own_connections(connections, like)
    if scheme == "sqlite":
        return _sqlite(rest, validate.schema(schema), tenant)
    other = f", not {scheme!r}" if re.fullmatch(r"[a-z0-9+]{1,20}", scheme) and rest else ""
    raise InvalidInput(f"a store's URL starts with sqlite:// or postgresql://{other}: {_FORMS}")


def open_replica(
    url: str,
    primary: Store,
    *,
    schema: str = "relet",
    tenant: str | None = None,
    connections: int = 10,
    like: Replica | None = None,
) -> Replica:
    """The standby of a store, not connected yet. With `like`, the replica of another schema, it shares connections."""
    if primary.dialect != "postgres":
        raise InvalidInput(
            "a SQLite file has no replica: every program that uses it reads the file itself; remove replica= and "
            "RELET_REPLICA_URL, or use PostgreSQL"
        )
    text = without_driver(url) if isinstance(url, str) else ""
    if text.partition("://")[0] not in ("postgres", "postgresql"):
        raise InvalidInput("the URL of a replica is that of a standby: postgresql://user:password@host/database")
    sharing = None if like is None else like.standby
    target = with_option(text, "target_session_attrs", "prefer-standby")
    standby = open_store(target, schema=schema, tenant=tenant, connections=connections, like=sharing)
    standby.clock = primary.clock
    return Replica(primary, standby)


def _postgres(url: str, schema: str, connections: int) -> Store:
    try:
        from .postgres import PostgresStore  # imported here: SQLite must work without psycopg
    except ImportError as error:
        raise StoreError(f"psycopg cannot load libpq: run pip install 'relet[binary]' ({error})") from error
    return PostgresStore(url, schema=schema, connections=connections)


def _sqlite(rest: str, schema: str, tenant: str | None) -> SQLiteStore:
    location, _, query = rest.partition("?")
    if location and not location.startswith("/"):
        raise InvalidInput(f"this SQLite URL names a host; start the path with three slashes: {_FORMS}")
    path = unquote(location.removeprefix("/"))
    options = dict(parse_qsl(query))
    synchronous = validate.one_of(
        "synchronous", options.pop("synchronous", "FULL").upper(), ("FULL", "NORMAL", "EXTRA")
    )
    if options:
        unknown = ", ".join(sorted(options))
        raise InvalidInput(f"unknown options in the SQLite URL: {unknown}; known: synchronous=full|normal|extra")
    if path in ("", ":memory:"):
        return SQLiteStore(None, schema=schema)
    if tenant:
        path = tenants.file_of(path, tenant)
    return SQLiteStore(path, schema=schema, synchronous=synchronous)
