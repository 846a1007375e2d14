"""Django in tests: its settings are the process's, which other tests share, so databases come and go one by one."""

from __future__ import annotations

import os
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import Any

import django
from asgiref.local import Local
from django.conf import settings
from django.db import connection, connections, transaction
from django.db.utils import ConnectionHandler
from django.utils.functional import empty
from psycopg.conninfo import conninfo_to_dict

from tests.databases import Database

try:
    from django.tasks import task_backends
except ImportError:  # before Django 6
    from django_tasks import task_backends


def configure() -> None:
    """Once in a process; with a time zone that would show if it mattered."""
    if not settings.configured:
        backend = {"BACKEND": "relet.contrib.django.ReletBackend"}
        settings.configure(
            DATABASES={},
            USE_TZ=True,
            TIME_ZONE="Asia/Kathmandu",
            LOGGING_CONFIG=None,
            TASKS={"default": backend},
            INSTALLED_APPS=[] if django.VERSION >= (6,) else ["django_tasks"],
        )
        django.setup()


def database_settings(url: str, **options: Any) -> dict[str, Any]:
    """The settings of a database, all of them."""
    found: dict[str, Any]
    if url.startswith("sqlite:///"):
        found = {
            "ENGINE": "django.db.backends.sqlite3",
            "NAME": url.removeprefix("sqlite:///"),
            "OPTIONS": options,
        }
    else:
        parts = conninfo_to_dict(url)
        name = parts.pop("dbname")
        found = {
            "ENGINE": "django.db.backends.postgresql",
            "NAME": name,
            "OPTIONS": {**parts, **options},
        }
    return ConnectionHandler({"default": found}).settings["default"]  # type: ignore[no-any-return]


@contextmanager
def known_as(alias: str, found: dict[str, Any]) -> Iterator[Any]:
    """A database that Django knows for a while; as this thread's connection to it."""
    configure()
    before = connections.settings.get(alias)
    forget(alias)
    connections.settings[alias] = found
    try:
        yield connections[alias]
    finally:
        forget(alias)
        connections.settings[alias] = before
        if before is None:
            del connections.settings[alias]


# The ways to have a transaction.

Way = Callable[[Database], Any]  # to a context manager of a connection on which a transaction is open


@contextmanager
def proxy(database: Database) -> Iterator[Any]:
    with known_as("default", database_settings(database.url)), transaction.atomic():
        yield connection


@contextmanager
def wrapper(database: Database) -> Iterator[Any]:
    with known_as("other", database_settings(database.url)) as raw, transaction.atomic(using="other"):
        yield raw


@contextmanager
def logged(database: Database) -> Iterator[Any]:
    """As with DEBUG: each query is noted, values and all."""
    with wrapper(database) as raw:
        raw.force_debug_cursor = True
        yield raw
        raw.force_debug_cursor = False
        assert any("insert" in query["sql"] for query in raw.queries)


@contextmanager
def with_options(database: Database) -> Iterator[Any]:
    options = {"server_side_binding": True} if database.is_postgres else {"transaction_mode": "IMMEDIATE"}
    with known_as("other", database_settings(database.url, **options)) as raw, transaction.atomic(using="other"):
        yield raw


@contextmanager
def by_hand(database: Database) -> Iterator[Any]:
    """Autocommit is off, and no block is open."""
    with known_as("other", database_settings(database.url)) as raw:
        transaction.set_autocommit(False, using="other")
        try:
            yield raw
        except BaseException:
            transaction.rollback(using="other")
            raise
        transaction.commit(using="other")


WAYS: dict[str, Way] = {
    "proxy": proxy,
    "wrapper": wrapper,
    "logged": logged,
    "options": with_options,
    "by_hand": by_hand,
}


@contextmanager
def settings_in(module: str) -> Iterator[None]:
    """Django as it is in a separate process, whose settings are in a module; they are read when they are needed."""
    configure()  # whose apps are ready, as those of any program of Django's are
    before = settings._wrapped
    zone, variable = os.environ.get("TZ"), os.environ.get("DJANGO_SETTINGS_MODULE")
    os.environ["DJANGO_SETTINGS_MODULE"] = module
    settings._wrapped = empty
    _start_over()
    try:
        yield
    finally:
        _start_over()
        settings._wrapped = before
        _put_back("DJANGO_SETTINGS_MODULE", variable)
        _put_back("TZ", zone)  # Django sets it
        time.tzset()


def _start_over() -> None:
    """Have the databases read from the settings by the next caller."""
    for alias in connections.__dict__.pop("settings", ()):
        forget(alias)
    connections._settings = None
    task_backends._settings = None
    task_backends.__dict__.pop("settings", None)
    task_backends._connections = Local(task_backends.thread_critical)


def forget(alias: str) -> None:
    """Close what this thread has open, and have the next caller open it anew."""
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
