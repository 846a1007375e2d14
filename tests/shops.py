"""A small shop for the command line: an app in a directory, and the steps of a test beside commands."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import pytest

from relet import App, Client, Draft, Job
from tests.conftest import LOCAL_PG_KINDS
from tests.databases import Database, shared_schema
from tests.harness import harness_of

SHOP = """
from relet import App

app = App({url!r}, schema={schema!r})


@app.task(queue="billing", max_attempts=2)
def charge(account: str, cents: int = 500) -> str:
    return f"{{account}} paid {{cents}}"


@app.task
def sweep(day: str = "mon") -> None: ...


@app.task
def pair(left: object, right: object = None) -> None: ...
"""


class CliShop:
    """A directory with an app."""

    def __init__(self, folder: Path, url: str, schema: str = "relet") -> None:
        self.folder = folder
        text = SHOP.format(url=url, schema=schema)
        (folder / "shop.py").write_text(text)
        namespace: dict[str, Any] = {"__name__": "shop"}
        exec(text, namespace)
        self.app: App = namespace["app"]
        self.client: Client = self.app.client
        self.charge, self.sweep = namespace["charge"], namespace["sweep"]

    def many(self, number: int, **options: Any) -> list[Job[Any]]:
        """Jobs of charge."""
        drafts: list[Draft[Any]] = [self.charge.using(**options).draft(f"acct-{n}") for n in range(number)]
        return self.client.enqueue_many(drafts)

    def failed(self, number: int, error: str = "ValueError: no") -> None:
        """Let so many of charge be claimed, and fail."""
        for job in harness_of(self.app).claim(number, queues=("billing",)):
            harness_of(self.app).fail(job, error)

    def state(self, job: Job[Any] | str) -> str | None:
        found = self.client.get(job)
        return None if found is None else str(found.state)


@contextmanager
def a_cli_shop(folder: Path, url: str, schema: str = "relet") -> Iterator[CliShop]:
    shop = CliShop(folder, url, schema)
    try:
        shop.client.migrate()
        yield shop
    finally:
        shop.app.close()


@pytest.fixture
def shop(tmp_path: Path) -> Iterator[CliShop]:
    """A shop on SQLite."""
    with a_cli_shop(tmp_path, f"sqlite:///{tmp_path / 'jobs.db'}") as made:
        yield made


@pytest.fixture(scope="module")
def still_shop(tmp_path_factory: pytest.TempPathFactory) -> Iterator[CliShop]:
    """A shop in which nothing is done: it has one job, that is queued, for the tests of a module."""
    folder = tmp_path_factory.mktemp("still")
    with a_cli_shop(folder, f"sqlite:///{folder / 'jobs.db'}") as made:
        made.many(1)
        yield made
        assert [str(job.state) for job in made.client.jobs().jobs] == ["queued"], "something was done"


@pytest.fixture(scope="module", params=["sqlite", *LOCAL_PG_KINDS])
def _schema_of_shops(request: pytest.FixtureRequest) -> Iterator[Database | None]:
    if request.param == "sqlite":
        yield None
    else:
        yield from shared_schema(request)


@pytest.fixture
def any_shop(_schema_of_shops: Database | None, tmp_path: Path) -> Iterator[CliShop]:
    """A shop on SQLite, and one on PostgreSQL."""
    database = _schema_of_shops
    if database is None:
        with a_cli_shop(tmp_path, f"sqlite:///{tmp_path / 'jobs.db'}") as made:
            yield made
        return
    with a_cli_shop(tmp_path, database.url, database.schema) as made:
        yield made
    database.empty()
