"""Django: a backend for its task framework, management commands, and pages of the admin.

    TASKS = {"default": {"BACKEND": "relet.contrib.django.ReletBackend"}}

`task` is `django.tasks.task` with types and the options of Relet. `get_app(alias)` is the app behind a backend, and
`relet.contrib.django:app` names the app of the backend "default" on the command line, or `:alias` that of another.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from .backend import ReletBackend
    from .databases import DjangoApp
    from .tasks import ReletTask, TaskContext, TaskResult, task

__all__ = ["DjangoApp", "ReletBackend", "ReletTask", "TaskContext", "TaskResult", "get_app", "task"]

_MODULES = {
    "DjangoApp": "databases",
    "ReletBackend": "backend",
    "ReletTask": "tasks",
    "TaskContext": "tasks",
    "TaskResult": "tasks",
    "task": "tasks",
}


def get_app(alias: str = "default") -> DjangoApp:
    """The app of a task backend, with every task that a worker of it can run."""
    from .backend import ReletBackend
    from .framework import InvalidTaskBackend, task_backends

    backend = task_backends[alias]
    if not isinstance(backend, ReletBackend):
        raise InvalidTaskBackend(f"TASKS[{alias!r}] is {type(backend).__qualname__}, not a ReletBackend")
    return backend.discover()


def __getattr__(name: str) -> Any:
    """Import what needs Django's settings on first use: Django imports this package before its apps are ready."""
    from importlib import import_module

    if name in _MODULES:
        return getattr(import_module(f"{__name__}.{_MODULES[name]}"), name)
    if name == "app" or name in _aliases():
        import django
        from django.apps import apps

        if not apps.ready:
            django.setup()
        return get_app("default" if name == "app" else name)
    raise AttributeError(f"module {__name__!r} has no attribute {name!r}")


def _aliases() -> Any:
    """The aliases of the task backends, if there are settings."""
    import os

    from django.conf import settings

    has_settings = settings.configured or "DJANGO_SETTINGS_MODULE" in os.environ
    return getattr(settings, "TASKS", ()) if has_settings else ()
