"""URLs of SQLAlchemy. Sessions and connections need no integration: `task.using(connection=session).enqueue(...)`."""

from __future__ import annotations

from sqlalchemy import Connection, Engine, make_url
from sqlalchemy.engine import URL
from sqlalchemy.ext.asyncio import AsyncConnection, AsyncEngine

__all__ = ["database_url"]


def database_url(source: Engine | AsyncEngine | Connection | AsyncConnection | URL | str) -> str:
    """The URL of an engine with its password, for `App`. `str(engine.url)` has three asterisks in its place."""
    if isinstance(source, Engine | AsyncEngine):
        source = source.url
    elif isinstance(source, Connection | AsyncConnection):
        source = source.engine.url
    return make_url(source).render_as_string(hide_password=False)
