"""The app of Django that creates Relet's tables: `INSTALLED_APPS = ["relet.contrib.django", ...]`."""

from __future__ import annotations

from typing import Any

from django.apps import AppConfig
from django.conf import settings
from django.db import connections, router, transaction
from django.db.models.signals import post_migrate

from .databases import opened


class ReletConfig(AppConfig):  # type: ignore[misc]
    """Creates and updates the tables whenever Django has migrated the database that holds the jobs."""

    name = "relet.contrib.django"
    label = "relet"
    verbose_name = "Relet"
    default_auto_field = "django.db.models.BigAutoField"

    def ready(self) -> None:
        post_migrate.connect(create_tables, sender=self)


def create_tables(using: str, verbosity: int = 1, **kwargs: Any) -> None:
    """Apply the missing migrations of Relet to a database, in one transaction on Django's connection."""
    connection = connections[using]
    if not router.allow_migrate(using, "relet") or _is_in_memory(connection):
        return
    for backend in _backends(using):
        with transaction.atomic(using=using):
            applied = backend.app.client.migrate(connection=connection)
        if applied and verbosity >= 1:
            print(f"  Applied migrations of Relet to schema {backend.app._schema}: {', '.join(map(str, applied))}")
        _close_before_drop(connection)


def _backends(using: str) -> list[Any]:
    """The backends whose jobs live in this database."""
    from .backend import ReletBackend
    from .framework import task_backends

    found = [task_backends[alias] for alias in getattr(settings, "TASKS", {})]
    return [one for one in found if isinstance(one, ReletBackend) and one.options.get("database", "default") == using]


def _is_in_memory(connection: Any) -> bool:
    """A test database of SQLite may be in memory, where jobs cannot live. Tests without jobs need no tables."""
    return connection.vendor == "sqlite" and bool(connection.is_in_memory_db())


def _close_before_drop(connection: Any) -> None:
    """Close the connections of the apps before a test runner drops the database: PostgreSQL refuses to drop a database
    that others use. Django has no signal for it."""
    creation = connection.creation
    if "destroy_test_db" in vars(creation):
        return
    destroy = creation.destroy_test_db

    def close_and_destroy(*args: Any, **kwargs: Any) -> Any:
        for app in opened():
            app.close()
        return destroy(*args, **kwargs)

    creation.destroy_test_db = close_and_destroy
