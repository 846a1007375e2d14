"""Stores for tests: each test that asks for a URL gets a fresh, empty store, once for every kind there is."""

from __future__ import annotations

import logging
import signal
import uuid
from collections.abc import Iterator
from contextlib import ExitStack
from pathlib import Path
from typing import Any

import pytest

from tests import servers
from tests.servers import PrivateServer, Server, Servers

pytest_plugins = [
    "tests.plugin.selection",
    "tests.plugin.heap",
    "tests.databases",
    "tests.plugin.apps",
    "tests.plugin.command_line",
    "tests.shops",
    "tests.web.api_client",
    "tests.worker.processes",
    "tests.worker.programs",
]

SERVERS = pytest.StashKey[Servers]()
SKIP = [pytest.param("pg", marks=pytest.mark.skip(reason=servers.HOW_TO_GET_ONE))]
SQLITE_KINDS = ["memory", "sqlite"]
SQLITE_FILE = pytest.param("sqlite", marks=pytest.mark.other_store)


def _first_and_others(names: list[str]) -> list[Any]:
    """Parameters: the first server, and the others for `--all` and for tests marked `every_server`."""
    return [*names[:1], *(pytest.param(name, marks=pytest.mark.other_server) for name in names[1:])] or SKIP


PG_KINDS = _first_and_others(servers.names())
LOCAL_PG_KINDS = _first_and_others(servers.local_names())


def pytest_configure(config: pytest.Config) -> None:
    _let_children_be_interrupted()
    home = getattr(config, "workerinput", {}).get("servers")  # there in a worker of xdist
    if home is not None:
        config.stash[SERVERS] = Servers(Path(home))
        return
    stack = ExitStack()
    config.add_cleanup(stack.close)
    config.stash[SERVERS] = stack.enter_context(servers.running())


def _let_children_be_interrupted() -> None:
    """A shell without job control has its background jobs ignore SIGINT, which all their children would inherit."""
    if signal.getsignal(signal.SIGINT) is signal.SIG_IGN:
        signal.signal(signal.SIGINT, signal.default_int_handler)


@pytest.hookimpl(optionalhook=True)
def pytest_configure_node(node: Any) -> None:
    node.workerinput["servers"] = str(node.config.stash[SERVERS].home)


@pytest.fixture(autouse=True)
def log_levels() -> Iterator[None]:
    """A framework that a test starts may configure the root logger, as Litestar does. No other test shall see that."""
    root = logging.getLogger()
    level, handlers = root.level, root.handlers[:]
    yield
    root.setLevel(level)
    root.handlers[:] = handlers


@pytest.fixture(scope="session")
def pg_servers(pytestconfig: pytest.Config) -> list[Server]:
    return pytestconfig.stash[SERVERS].all() or pytest.skip(servers.HOW_TO_GET_ONE)


@pytest.fixture(params=LOCAL_PG_KINDS)
def private_server(request: pytest.FixtureRequest) -> Iterator[PrivateServer]:
    """A server for this test alone, which may stop it, kill it and start it again. Takes a second or two."""
    with request.config.stash[SERVERS].private(request.param) as server:
        yield server


@pytest.fixture
def schema() -> str:
    """The name of a schema that no other test uses; the fixtures below drop it when the test is over."""
    return f"t_{uuid.uuid4().hex[:12]}"


@pytest.fixture(params=[*SQLITE_KINDS, *PG_KINDS])
def store_url(request: pytest.FixtureRequest, tmp_path: Path, schema: str) -> Iterator[str]:
    """Every kind of store."""
    if request.param in SQLITE_KINDS:
        yield _sqlite_url(request.param, tmp_path)
    else:
        yield from _pg_url(request, schema)


@pytest.fixture(params=SQLITE_KINDS)
def sqlite_url(request: pytest.FixtureRequest, tmp_path: Path) -> str:
    """SQLite only, in memory and in a file."""
    return _sqlite_url(request.param, tmp_path)


@pytest.fixture(params=PG_KINDS)
def pg_url(request: pytest.FixtureRequest, schema: str) -> Iterator[str]:
    """PostgreSQL only."""
    yield from _pg_url(request, schema)


def _sqlite_url(kind: str, tmp_path: Path) -> str:
    return "sqlite:///:memory:" if kind == "memory" else f"sqlite:///{tmp_path / 'relet.db'}"


def _pg_url(request: pytest.FixtureRequest, schema: str) -> Iterator[str]:
    server = request.config.stash[SERVERS].get(request.param)
    yield server.dsn
    server.drop_schema(schema)
