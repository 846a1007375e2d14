"""Jobs as a model of Django, for the admin: read-only, over the view `all_jobs`, without lease tokens and payloads."""

from __future__ import annotations

from datetime import UTC, datetime
from typing import Any

from django.conf import settings
from django.db import models

from ..._core.job import State
from .results import moment


def _table() -> str:
    """The view of the first backend of Relet: in its schema on PostgreSQL, with its name as prefix on SQLite."""
    options = _options()
    schema = options.get("schema", "relet")
    engine: str = settings.DATABASES.get(options.get("database", "default"), {}).get("ENGINE", "")
    # Django quotes no name that is quoted already.
    return f"{schema}_all_jobs" if "sqlite" in engine or "spatialite" in engine else f'"{schema}"."all_jobs"'


def alias() -> str | None:
    """The alias of the backend whose jobs the model has: the first of Relet's in TASKS."""
    from django.utils.module_loading import import_string

    from .backend import ReletBackend

    for name, found in getattr(settings, "TASKS", {}).items():
        kind = import_string(found["BACKEND"])
        if isinstance(kind, type) and issubclass(kind, ReletBackend):
            return str(name)
    return None


def _options() -> dict[str, Any]:
    found: dict[str, Any] = getattr(settings, "TASKS", {}).get(alias(), {}).get("OPTIONS", {})
    return found


class MomentField(models.DateTimeField):  # type: ignore[misc]
    """A time. SQLite has seconds since 1970."""

    def get_internal_type(self) -> str:
        return "MomentField"  # unknown to the backends, which therefore convert nothing

    def from_db_value(self, value: Any, expression: Any, connection: Any) -> datetime | None:
        return moment(datetime.fromtimestamp(value, UTC) if isinstance(value, int | float) else value)

    def get_db_prep_value(self, value: Any, connection: Any, prepared: bool = False) -> Any:
        value = value if prepared else self.get_prep_value(value)
        if connection.vendor == "sqlite" and isinstance(value, datetime):
            return value.timestamp()
        return value


class IdField(models.CharField):  # type: ignore[misc]
    """The id of a job as text. PostgreSQL has a UUID."""

    def from_db_value(self, value: Any, expression: Any, connection: Any) -> str | None:
        return None if value is None else str(value)


class Job(models.Model):  # type: ignore[misc]
    """A job, in any state."""

    id = IdField(primary_key=True, max_length=36, editable=False)
    task = models.CharField(max_length=128)
    queue = models.CharField(max_length=128)
    state = models.CharField(max_length=16, choices=[(state.value, state.value) for state in State])
    priority = models.SmallIntegerField()
    attempt = models.IntegerField()
    max_attempts = models.IntegerField()
    target = models.TextField(null=True)
    group = models.TextField(null=True, db_column="group_key")
    unique = models.TextField(null=True, db_column="unique_key")
    worker = models.TextField(null=True)
    error_type = models.TextField(null=True)
    created_at = MomentField()
    run_at = MomentField()
    started_at = MomentField(null=True)
    finished_at = MomentField(null=True)

    class Meta:
        managed = False
        db_table = _table()
        default_permissions = ("view", "change")
        ordering = ("-id",)

    def __str__(self) -> str:
        return f"{self.task} {self.id}"
