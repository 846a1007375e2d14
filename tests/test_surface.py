"""The public names of the package; and the sync and async clients have the same methods."""

from __future__ import annotations

import inspect
import pkgutil
import subprocess
import sys
from types import ModuleType
from typing import Any

import pytest

import relet
from relet import App, AsyncClient, Client, codecs, errors, events, types, web
from relet._client.schedules import AsyncSchedules, Schedules

NAMES = [
    "Aborted",
    "App",
    "AsyncClient",
    "Attempt",
    "Backoff",
    "Client",
    "Draft",
    "Fail",
    "InvalidInput",
    "Job",
    "JobCancelled",
    "JobContext",
    "JobFailed",
    "JobNotFound",
    "KeyTaken",
    "LeaseLost",
    "ReletError",
    "Retry",
    "SignalTimeout",
    "Snooze",
    "State",
    "StoreUnavailable",
    "WaitTimeout",
    "Worker",
    "__version__",
    "injected",
    "new_id",
]

METHODS = [
    "acting_as",
    "attempts",
    "audit",
    "dependencies",
    "bulk",
    "cancel",
    "chain",
    "complete",
    "count",
    "delete",
    "dependents",
    "describe",
    "doctor",
    "enqueue",
    "enqueue_many",
    "erase",
    "explain",
    "failures",
    "get",
    "idempotent",
    "jobs",
    "limit_queue",
    "migrate",
    "migration_sql",
    "pause",
    "pause_queue",
    "prune",
    "queues",
    "replica",
    "rerun",
    "result",
    "results",
    "resume",
    "resume_queue",
    "run_now",
    "schedules",
    "signal",
    "stats",
    "steps",
    "target",
    "targets",
    "tenant",
    "tenants",
    "totals",
    "wait",
    "wait_many",
    "where",
    "workers",
]

PROPERTIES = {"schedules", "where"}
NOT_AWAITED = {"acting_as", "idempotent", "replica", "tenant"}  # says where, and does nothing yet


def public(cls: type) -> list[str]:
    return sorted(name for name in dir(cls) if not name.startswith("_"))


def test_the_package_shows_exactly_these_names() -> None:
    assert sorted(relet.__all__) == sorted(NAMES)
    for name in NAMES:
        assert getattr(relet, name).__doc__, f"{name} is not explained"


@pytest.mark.parametrize("module", [types, codecs, errors, events, web], ids=lambda module: module.__name__)
def test_a_public_module_lists_its_names(module: ModuleType) -> None:
    """Names imported from elsewhere are not among them."""
    listed = set(module.__all__)
    classes = {
        name for name, made in vars(module).items() if inspect.isclass(made) and made.__module__ == module.__name__
    }
    assert {name for name in classes if not name.startswith("_")} <= listed
    for name in classes & listed:
        assert getattr(module, name).__doc__, f"{module.__name__}.{name} is not explained"


def test_nothing_else_is_public() -> None:
    modules = {module.name for module in pkgutil.iter_modules(relet.__path__) if not module.name.startswith("_")}
    assert modules == {"app", "codecs", "contrib", "errors", "events", "logs", "testing", "types", "web"}


def test_every_error_can_be_caught_by_its_base() -> None:
    raised = [cls for _, cls in inspect.getmembers(errors, inspect.isclass) if issubclass(cls, BaseException)]
    for cls in raised:
        assert issubclass(cls, errors.ReletError | errors.Aborted | errors.Suspended)


@pytest.mark.parametrize("cls", [Client, AsyncClient])
def test_a_client_says_exactly_these_words(cls: type) -> None:
    assert public(cls) == sorted(METHODS)


@pytest.mark.parametrize("name", sorted(set(METHODS) - PROPERTIES))
def test_the_two_clients_have_one_signature_and_one_text(name: str) -> None:
    plain, other = getattr(Client, name), getattr(AsyncClient, name)
    assert _shape(other) == _shape(plain)
    assert plain.__doc__
    assert other.__doc__ == plain.__doc__
    assert not inspect.iscoroutinefunction(plain)
    assert inspect.iscoroutinefunction(other) == (name not in NOT_AWAITED)


@pytest.mark.parametrize("name", sorted(PROPERTIES))
def test_the_two_clients_explain_their_properties_alike(name: str) -> None:
    assert getattr(Client, name).__doc__
    assert getattr(Client, name).__doc__ == getattr(AsyncClient, name).__doc__


@pytest.mark.parametrize("name", public(Schedules))
def test_schedules_have_one_signature_and_one_text_in_both_colours(name: str) -> None:
    plain, other = getattr(Schedules, name), getattr(AsyncSchedules, name)
    assert _shape(other) == _shape(plain)
    assert plain.__doc__
    assert other.__doc__ == plain.__doc__
    assert inspect.iscoroutinefunction(other)


def _shape(method: Any) -> list[object]:
    signature = inspect.signature(method)
    shape: list[object] = [(p.name, p.kind, p.default, p.annotation) for p in signature.parameters.values()]
    return [*shape, str(signature.return_annotation).replace("AsyncClient", "Client")]


def test_every_public_thing_of_an_app_is_explained() -> None:
    for name in public(App):
        assert getattr(App, name).__doc__, name


def test_importing_the_package_is_quick_and_connects_to_nothing() -> None:
    """Modules that a start does not need are not imported: frameworks and drivers of others."""
    heavy = {"sqlalchemy", "asyncpg", "pydantic", "django", "aiosqlite", "opentelemetry", "cryptography"}
    script = f"import sys, relet; print(sorted({heavy!r} & set(sys.modules)))"
    assert subprocess.run([sys.executable, "-c", script], capture_output=True, text=True, check=True).stdout == "[]\n"


def test_an_app_says_where_it_lives_and_not_with_which_password() -> None:
    assert repr(App("postgresql://ada:canary@db.example:5433/shop?sslmode=require&password=canary2")) == (
        "App('postgresql://ada@db.example:5433/shop')"
    )


def test_an_app_takes_its_url_from_the_environment(monkeypatch: pytest.MonkeyPatch, tmp_path: Any) -> None:
    monkeypatch.chdir(tmp_path)
    monkeypatch.delenv("RELET_URL", raising=False)
    assert repr(App()) == f"App('sqlite:///{tmp_path}/relet.db')"
    monkeypatch.setenv("RELET_URL", "postgresql://db/shop")
    assert repr(App()) == "App('postgresql://db/shop')"
    assert repr(App("sqlite:///:memory:")) == "App('sqlite:///:memory:')"
    assert list(tmp_path.iterdir()) == [], "nothing is connected, or made, before first use"
