"""Django in tests: its settings are the process's, which other tests share, so databases come and go one by one."""

from __future__ import annotations

import os
import time
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

import django
from django.conf import settings
from django.db import connections
from django.db.utils import ConnectionHandler
from django.utils.functional import empty
from psycopg.conninfo import conninfo_to_dict


def configure() -> None:
    """Once in a process; with a time zone that would show if it mattered."""
    if not settings.configured:
        settings.configure(DATABASES={}, USE_TZ=True, TIME_ZONE="Asia/Kathmandu", LOGGING_CONFIG=None)
        django.setup()


def database(url: str, **options: Any) -> dict[str, Any]:
    """The settings of a database, all of them."""
    if url.startswith("sqlite:///"):
        found = {"ENGINE": "django.db.backends.sqlite3", "NAME": url.removeprefix("sqlite:///"), "OPTIONS": options}
    else:
        parts = conninfo_to_dict(url)
        name = parts.pop("dbname")
        found = {"ENGINE": "django.db.backends.postgresql", "NAME": name, "OPTIONS": {**parts, **options}}
    return ConnectionHandler({"default": found}).settings["default"]  # type: ignore[no-any-return]


@contextmanager
def known_as(alias: str, found: dict[str, Any]) -> Iterator[Any]:
    """A database that Django knows for a while; as this thread's connection to it."""
    configure()
    before = connections.settings.get(alias)
    _forget(alias)
    connections.settings[alias] = found
    try:
        yield connections[alias]
    finally:
        _forget(alias)
        connections.settings[alias] = before
        if before is None:
            del connections.settings[alias]


@contextmanager
def settings_in(module: str) -> Iterator[None]:
    """Django as it is in a process of its own, whose settings are in a module; they are read when they are needed."""
    before = settings._wrapped
    zone, variable = os.environ.get("TZ"), os.environ.get("DJANGO_SETTINGS_MODULE")
    os.environ["DJANGO_SETTINGS_MODULE"] = module
    settings._wrapped = empty
    connections.__dict__.pop("settings", None)
    try:
        yield
    finally:
        for alias in connections.__dict__.pop("settings", ()):
            _forget(alias)
        settings._wrapped = before
        _put_back("DJANGO_SETTINGS_MODULE", variable)
        _put_back("TZ", zone)  # Django sets it
        time.tzset()


def _forget(alias: str) -> None:
    """Close what this thread has open, and have it made anew by whoever asks next."""
    if hasattr(connections._connections, alias):
        raw = connections[alias].connection
        connections[alias].close()
        if raw is not None:
            raw.close()  # Django leaves a database in memory open
        del connections[alias]


def _put_back(name: str, value: str | None) -> None:
    os.environ.pop(name, None)
    if value is not None:
        os.environ[name] = value
