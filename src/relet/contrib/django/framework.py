"""The task framework of Django: `django.tasks` from Django 6 on, or the package `django-tasks` with an older Django."""

from __future__ import annotations

from importlib import import_module
from typing import Any

try:
    PACKAGE = "django.tasks"
    _package: Any = import_module(PACKAGE)
except ImportError:
    try:
        PACKAGE = "django_tasks"
        _package = import_module(PACKAGE)
    except ImportError:
        raise ImportError(
            "relet.contrib.django needs Django 6 or newer, or the package django-tasks with an older Django:"
            " run pip install 'django-tasks>=0.12'"
        ) from None

_base: Any = import_module(f"{PACKAGE}.base")
_exceptions: Any = import_module(f"{PACKAGE}.exceptions")
_signals: Any = import_module(f"{PACKAGE}.signals")

BaseTaskBackend: Any = import_module(f"{PACKAGE}.backends.base").BaseTaskBackend
Task: Any = _base.Task
TaskContext: Any = _base.TaskContext
TaskError: Any = _base.TaskError
TaskResult: Any = _base.TaskResult
TaskResultStatus: Any = _base.TaskResultStatus
#: Converts a value to plain JSON values, or raises TypeError.
normalize_json: Any = _base.normalize_json
task_backends: Any = _package.task_backends
#: The default alias of a backend, and the default name of a queue.
DEFAULT: str = _base.DEFAULT_TASK_BACKEND_ALIAS

TaskResultDoesNotExist: Any = _exceptions.TaskResultDoesNotExist
InvalidTask: Any = getattr(_exceptions, "InvalidTask", None) or _exceptions.InvalidTaskError
InvalidTaskBackend: Any = getattr(_exceptions, "InvalidTaskBackend", None) or _exceptions.InvalidTaskBackendError

task_enqueued: Any = _signals.task_enqueued
task_started: Any = _signals.task_started
task_finished: Any = _signals.task_finished
