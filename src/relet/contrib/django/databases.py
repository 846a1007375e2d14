"""The app of a task backend, whose store is one of Django's databases."""

from __future__ import annotations

import os
import threading
from collections.abc import Mapping
from functools import lru_cache
from typing import Any
from urllib.parse import quote, urlencode

from django.core.exceptions import ImproperlyConfigured
from django.db import connections

from ..._tasks.options import Defaults
from ...app import App
from ...errors import InvalidInput

#: Options of a backend for its app; the others are defaults of tasks, or `database`.
APP_OPTIONS = ("schema", "connections", "payload_limit", "redact", "codecs")
DEFAULT_OPTIONS = tuple(name for name in Defaults.__annotations__ if name != "queue")
OPTIONS = ("database", *APP_OPTIONS, *DEFAULT_OPTIONS)


class DjangoApp(App):
    """An app whose store is a database of Django's settings. A test runner may give that database another name."""

    def __init__(self, alias: str, options: Mapping[str, Any]) -> None:
        unknown = sorted(options.keys() - set(OPTIONS))
        if unknown:
            raise ImproperlyConfigured(
                f"TASKS[{alias!r}]['OPTIONS'] has no option {', '.join(unknown)}; there are {', '.join(OPTIONS)}"
            )
        self.alias = alias
        self.database: str = options.get("database", "default")
        self.options = dict(options)
        self._target = _target(self.database)
        # As in Django's own backends, a task that raises is not run again unless it asks for that.
        defaults: Any = {"max_attempts": 1, **{name: options[name] for name in DEFAULT_OPTIONS if name in options}}
        own: Any = {name: options[name] for name in APP_OPTIONS if name in options}
        try:
            super().__init__(url_of(self.database), defaults=defaults, **own)
        except InvalidInput as error:
            raise ImproperlyConfigured(f"TASKS[{alias!r}]['OPTIONS']: {error}") from error

    def follow_settings(self) -> None:
        """Use the database that the settings name now: a test runner replaces its name by that of a test database."""
        target = _target(self.database)
        if target != self._target:
            url = url_of(self.database)
            self.close()
            self._url, self._target = url, target
            self._stores = {None: self._open(None, None)}
            self._bind_clients()


_apps: dict[str, DjangoApp] = {}
_lock = threading.RLock()


def app_of(alias: str, options: Mapping[str, Any]) -> DjangoApp:
    """The app of a backend, one in a process: Django makes a backend for each thread."""
    with _lock:
        found = _apps.get(alias)
        if found is None or found.options != options:
            if found is not None:
                found.close()
            found = _apps[alias] = DjangoApp(alias, options)
        found.follow_settings()
        return found


def opened() -> list[DjangoApp]:
    """The apps of this process."""
    with _lock:
        return list(_apps.values())


def _target(database: str) -> tuple[Any, ...]:
    """The settings that say which database it is. They change if a test runner makes a test database."""
    found = connections.settings[database]
    return tuple(found.get(name) for name in ("ENGINE", "NAME", "HOST", "PORT", "USER"))


def url_of(database: str) -> str:
    """The URL of a database of Django's settings."""
    connection = connections[database]
    if connection.vendor == "sqlite":
        return _sqlite_url(database, connection)
    if connection.vendor == "postgresql":
        return _postgres_url(connection)
    raise ImproperlyConfigured(
        f"DATABASES[{database!r}] is {connection.vendor}, but Relet keeps its jobs in PostgreSQL or SQLite"
    )


def _sqlite_url(database: str, connection: Any) -> str:
    name = os.fspath(connection.settings_dict["NAME"])
    if connection.is_in_memory_db() or name.startswith("file:"):
        raise ImproperlyConfigured(
            f"DATABASES[{database!r}] is {name}, which Relet cannot share: jobs need a file that all connections open."
            f" In tests, set DATABASES[{database!r}]['TEST']['NAME'] to the path of a file, or use another task backend"
        )
    return f"sqlite:///{quote(os.path.abspath(name))}"


def _postgres_url(connection: Any) -> str:
    """The parameters that Django passes to libpq. It adds some for psycopg, which Relet sets itself."""
    known = _libpq_keywords() - {"client_encoding"}
    parameters = {name: str(value) for name, value in connection.get_connection_params().items() if name in known}
    if parameters.get("host", "").startswith("/"):  # a directory of Unix sockets cannot be the host of a URL
        host, port, credentials = "", "", ""
    else:
        host, port = parameters.pop("host", ""), parameters.pop("port", "")
        credentials = quote(parameters.pop("user", ""), safe="")
        if "password" in parameters:
            credentials += f":{quote(parameters.pop('password'), safe='')}"
    location = f"{f'{credentials}@' if credentials else ''}{host}{f':{port}' if port else ''}"
    name = quote(parameters.pop("dbname", ""), safe="")
    return f"postgresql://{location}/{name}?{urlencode(parameters, quote_via=quote)}"


@lru_cache(maxsize=1)
def _libpq_keywords() -> frozenset[str]:
    from psycopg.pq import Conninfo

    return frozenset(option.keyword.decode() for option in Conninfo.get_defaults())
