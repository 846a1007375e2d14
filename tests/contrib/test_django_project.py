"""The example shop as a project of Django: manage.py, its test runner, a worker that reloads."""

from __future__ import annotations

import os
import re
import signal
import subprocess
import sys
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from shutil import copytree, ignore_patterns
from typing import Any

import psycopg
import pytest

from tests.conftest import PG_KINDS, SERVERS

SHOP = Path(__file__).parents[2] / "examples" / "django_shop"


class Project:
    """A copy of the shop, with its own database."""

    def __init__(self, folder: Path, url: str | None) -> None:
        copytree(SHOP, folder, ignore=ignore_patterns("__pycache__", "*.sqlite3*"))
        self.folder = folder
        self.url = url
        self.environment = {
            **{name: value for name, value in os.environ.items() if not name.startswith("DJANGO")},
            "SHOP_FOLDER": str(folder),
            **({"DATABASE_URL": url} if url else {}),
        }
        self.environment.pop("RELET_URL", None)

    @contextmanager
    def started(self, *words: str, **options: Any) -> Iterator[subprocess.Popen[str]]:
        """A process in a separate group, which is gone after the block, and its pipe closed."""
        with self.start(*words, **options, start_new_session=True) as process:
            try:
                yield process
            finally:
                if process.poll() is None:
                    os.killpg(process.pid, signal.SIGKILL)

    def start(self, *words: str, **options: Any) -> subprocess.Popen[str]:
        command = [sys.executable, str(self.folder / "manage.py"), *words]
        return subprocess.Popen(
            command,
            env=self.environment,
            stdout=subprocess.PIPE,
            stderr=subprocess.STDOUT,
            text=True,
            **options,
        )

    def run(self, *words: str, code: int = 0) -> str:
        with self.started(*words, cwd="/") as process:  # the directory does not matter
            output, _ = process.communicate(timeout=100)
        assert process.returncode == code, output
        return output

    def shell(self, program: str) -> str:
        return self.run("shell", "-v", "0", "-c", program)


@pytest.fixture(params=["sqlite", *PG_KINDS])
def project(request: pytest.FixtureRequest, tmp_path: Path) -> Iterator[Project]:
    if request.param == "sqlite":
        yield Project(tmp_path / "shop", None)
    else:
        with request.config.stash[SERVERS].get(request.param).fresh_database() as url:
            yield Project(tmp_path / "shop", url)


def test_the_demo_of_the_shop(project: Project) -> None:
    printed = [line for line in project.run("demo").splitlines() if re.match(r"placed|order \d|receipts|lamps", line)]
    assert printed == [
        "placed 3 orders; nothing is shipped: 0",
        "order 1: SUCCESSFUL 2 x lamp",
        "order 2: SUCCESSFUL 3 x lamp",
        "order 3: FAILED orders.tasks.OutOfStock",
        "receipts sent: 2",
        "lamps in stock: 0",
    ]


@pytest.mark.every_store
def test_django_migrates_the_tables_and_its_test_runner_drops_its_database(project: Project) -> None:
    printed = project.run("migrate")
    assert "Applied migrations of Relet to schema relet: 1, 2, 3, 4" in printed
    assert "Relet" not in project.run("migrate")
    printed = project.run("test", "orders")
    assert "\nOK\n" in printed
    if project.url:
        with psycopg.connect(project.url) as connection:
            name = f"test_{connection.info.dbname}"
            assert connection.execute("select 1 from pg_database where datname = %s", [name]).fetchall() == []
    else:
        assert not (project.folder / "test.sqlite3").exists()


def test_commands_of_relet_know_the_app(project: Project) -> None:
    project.run("migrate")
    project.shell("from orders.tasks import receipt; receipt.using(unique='x').enqueue(7)")
    assert "orders.tasks.receipt" in project.run("relet", "jobs")
    assert "is up to date" in project.run("relet", "migrate", "--settings", "shop.settings")
    assert "--backend can be default" in project.run("relet", "jobs", "--backend", "other", code=1)
    assert "unrecognized arguments: --unknown" in project.run("relet", "jobs", "--unknown", code=2)


@pytest.mark.long
def test_a_worker_that_reloads_runs_the_changed_task(project: Project) -> None:
    project.run("migrate")
    project.shell(
        "from orders.models import *;"
        "Order.objects.create(item=Item.objects.create(name='lamp', stock=1), number=1, email='a@example.org')"
    )
    enqueue = "from orders.tasks import receipt; print(receipt.enqueue(1).id)"
    # In the directory whose files are watched.
    with project.started("relet", "worker", "--reload", cwd=str(project.folder)) as worker:
        first = project.shell(enqueue).strip()
        assert return_value(project, first) == "receipt for order 1 to a@example.org"
        tasks = project.folder / "orders" / "tasks.py"
        tasks.write_text(tasks.read_text().replace("receipt for order", "thanks for order"))
        deadline = time.monotonic() + 60
        value = ""
        while not value.startswith("thanks") and time.monotonic() < deadline:
            value = return_value(project, project.shell(enqueue).strip())
        assert value == "thanks for order 1 to a@example.org"
        os.kill(worker.pid, signal.SIGTERM)
        output, _ = worker.communicate(timeout=60)
        assert worker.returncode == 0, output
        assert "Restarting, because files were changed: orders/tasks.py" in output


def test_pages_of_the_admin(project: Project) -> None:
    command = [sys.executable, str(Path(__file__).with_name("admin_checks.py"))]
    environment = {**project.environment, "DJANGO_SETTINGS_MODULE": "shop.settings", "PYTHONPATH": str(project.folder)}
    found = subprocess.run(command, env=environment, cwd=project.folder, capture_output=True, text=True, timeout=100)
    assert found.stdout.endswith("all pages are as they should be\n"), found.stdout + found.stderr


def test_mypy_finds_nothing_wrong_in_the_shop() -> None:
    environment = {**os.environ, "MYPYPATH": str(SHOP)}
    command = [sys.executable, "-m", "mypy", "--strict", "-p", "orders", "-p", "shop"]
    found = subprocess.run(command, env=environment, cwd=SHOP.parents[1], capture_output=True, text=True, timeout=100)
    assert found.returncode == 0, found.stdout


def return_value(project: Project, task_id: str) -> str:
    """The return value of a task, once a worker has run it."""
    return project.shell(
        "import time\n"
        "from orders.tasks import receipt\n"
        f"result = receipt.get_result({task_id!r})\n"
        "end = time.monotonic() + 60\n"
        "while not result.is_finished and time.monotonic() < end:\n"
        "    time.sleep(0.05); result.refresh()\n"
        "print(result.return_value)"
    ).strip()
