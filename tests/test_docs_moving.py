"""The page on moving from another queue, with the workers of that queue. Its other examples run in test_docs.py."""

from __future__ import annotations

import asyncio
import os
import re
import shutil
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import psycopg
import pytest
from procrastinate import App as Procrastinate
from procrastinate import PsycopgConnector
from psycopg.rows import class_row

from relet import App
from tests.pages import DOCS
from tests.test_cli_web import free_port
from tests.worker.programs import until

PAGE = DOCS / "guides" / "moving.md"


def sections() -> dict[str, str]:
    """The Python of each section, by its heading."""
    parts = re.split(r"^#{2,3} (.+)$", PAGE.read_text(), flags=re.M)[1:]
    return {
        heading: "\n".join(re.findall(r"^```python.*?\n(.*?)^```$", text, re.M | re.S))
        for heading, text in zip(parts[::2], parts[1::2], strict=True)
    }


def definitions(heading: str) -> str:
    """The functions and classes of a section, without the calls that show their use."""
    return re.split(r"^(?:_ = |async with|app\.client|forward\(|move_)", sections()[heading], flags=re.M)[0]


# On Redis


@pytest.fixture
def redis_url(tmp_path: Path) -> Iterator[str]:
    program = shutil.which("redis-server")
    if program is None:
        pytest.skip("redis-server is not installed")
    port = free_port()
    options = ["--port", str(port), "--bind", "127.0.0.1", "--dir", str(tmp_path), "--save", ""]
    redis = pytest.importorskip("redis", reason="the client of Redis is not installed")
    with subprocess.Popen([program, *options], stdout=subprocess.DEVNULL) as server:
        try:
            url = f"redis://127.0.0.1:{port}/0"
            until(lambda: answers(redis, url), lambda: "redis-server does not answer", 60)
            yield url
        finally:
            server.terminate()


def answers(redis: Any, url: str) -> bool:
    try:
        return bool(redis.Redis.from_url(url).ping())
    except redis.exceptions.ConnectionError:
        return False


PRODUCERS = {
    "Celery": """
for _ in range(2):
    forward_charge.apply_async(("acct-7", 500), task_id="one")
forward_charge.apply_async(("acct-8", 600), countdown=1)
""",
    "RQ": """
import redis, rq
queue = rq.Queue(connection=redis.Redis.from_url(os.environ["REDIS_URL"]))
from datetime import timedelta
queue.enqueue("shop.forward_charge", "acct-7", 500)
queue.enqueue_in(timedelta(seconds=1), "shop.forward_charge", "acct-8", 600)
""",
    "arq": """
import asyncio, arq
async def main():
    pool = await arq.create_pool(arq.connections.RedisSettings.from_dsn(os.environ["REDIS_URL"]))
    await pool.enqueue_job("charge", "acct-7", 500)
    await pool.enqueue_job("charge", "acct-8", 600, _defer_by=1)
asyncio.run(main())
""",
}
ARQ_SETTINGS = """
from arq.connections import RedisSettings
WorkerSettings.redis_settings = RedisSettings.from_dsn(os.environ["REDIS_URL"])
"""
WORKERS = {
    "Celery": ["celery", "-A", "shop:celery", "worker", "--pool", "solo", "--loglevel", "warning"],
    "RQ": ["rq.cli", "worker", "--with-scheduler", "--url", "{redis}"],
    "arq": ["arq", "shop.WorkerSettings"],
}


@pytest.mark.parametrize("system", WORKERS)
def test_workers_of_a_queue_on_redis_forward_jobs_that_wait(system: str, redis_url: str, tmp_path: Path) -> None:
    pytest.importorskip(system.lower(), reason=f"{system} is not installed")
    code = [definitions(heading) for heading in ("Run both side by side", "Forward jobs that wait", system)]
    (tmp_path / "shop.py").write_text("\n".join(["import os", *code, ARQ_SETTINGS if system == "arq" else ""]))
    (tmp_path / "produce.py").write_text("from shop import *\nimport os\n" + PRODUCERS[system])
    url = f"sqlite:///{tmp_path}/jobs.db"
    env = os.environ | {"RELET_URL": url, "REDIS_URL": redis_url}
    app = App(url)
    app.client.migrate()
    subprocess.run([sys.executable, "produce.py"], cwd=tmp_path, env=env, check=True, timeout=60)
    command = [sys.executable, "-m", *(word.format(redis=redis_url) for word in WORKERS[system])]
    with subprocess.Popen(command, cwd=tmp_path, env=env, stderr=subprocess.STDOUT, stdout=subprocess.PIPE) as worker:
        try:
            until(lambda: app.client.count() == 2, lambda: f"{app.client.count()} jobs were forwarded", 90)
        finally:
            worker.terminate()
            worker.communicate(timeout=60)
    assert sorted(job.payload["account"] for job in app.client.jobs().jobs) == ["acct-7", "acct-8"]


# On PostgreSQL


@pytest.mark.read_committed  # as procrastinate is
def test_jobs_that_are_moved_beside_a_running_worker_of_procrastinate_are_in_one_system_each(pg_url: str) -> None:
    app = App(pg_url)
    app.client.migrate()
    ran: list[int] = []
    old = Procrastinate(connector=PsycopgConnector(conninfo=pg_url))

    @old.task(name="shop.charge")
    async def charge(number: int) -> None:
        ran.append(number)
        await asyncio.sleep(0.005)

    moved: list[int] = []

    async def move_and_run() -> None:
        async with old.open_async():
            await old.schema_manager.apply_schema_async()
            for number in range(200):
                await charge.defer_async(number=number)
            mover = asyncio.to_thread(move_in_small_steps, pg_url, moved)
            await asyncio.gather(mover, old.run_worker_async(wait=False, install_signal_handlers=False))

    asyncio.run(move_and_run())
    stored = [job.payload["number"] for job in app.client.jobs(limit=200).jobs]
    assert sorted(ran + stored) == list(range(200))
    assert sum(moved) == len(stored) > 0
    app.close()


def move_in_small_steps(url: str, moved: list[int]) -> None:
    """The function of the page, ten rows at a time, so that the worker gets some as well."""
    scope: dict[str, Any] = {"psycopg": psycopg, "class_row": class_row, "SimpleNamespace": SimpleNamespace}
    app = scope["app"] = App(url)
    scope["charge"] = app.task(name="charge")(takes_number)
    exec("from relet import Draft\n" + definitions("procrastinate at once").replace("limit 1000", "limit 10"), scope)
    while count := scope["move_procrastinate"](url):
        moved.append(count)
    app.close()


def takes_number(number: int) -> None: ...
