"""Workers in the programs of web frameworks, under real servers: jobs run, the end is in order, no death is silent."""

from __future__ import annotations

import os
import signal
import socket
import sqlite3
import subprocess
import sys
import time
from collections.abc import Callable, Iterator
from contextlib import closing, contextmanager, suppress
from pathlib import Path

import httpx
import psycopg
import pytest

from relet import App, State
from tests.conftest import PG_KINDS, SERVERS
from tests.databases import Database

HEAD = """
import threading
from contextlib import asynccontextmanager
from relet import App, Worker
from relet.web import create_app

queue = App({url!r}, schema={schema!r})

@queue.task
async def greet(name: str) -> str:
    return f"Hello, {{name}}"

@queue.task
def slow() -> str:
    threading.Event().wait(1.0)
    return "done"

def break_worker() -> None:
    def broken(self):
        raise RuntimeError("the worker is broken")
    Worker._check_memory = broken  # which the worker calls every second

@asynccontextmanager
async def lifespan(app):
    async with queue.worker(concurrency=4, poll_interval=0.1):
        yield

dashboard = create_app(queue, operate={{"ada": "a token of 16 characters"}})
"""

FASTAPI = """
from typing import Annotated
from fastapi import Depends, FastAPI
from relet import AsyncClient

app = FastAPI(lifespan=lifespan)
app.mount("/queue", dashboard)

def client() -> AsyncClient:
    return queue.aclient

Client = Annotated[AsyncClient, Depends(client)]

@app.post("/greet/{{name}}")
async def enqueue(name: str, client: Client) -> str:
    return (await client.enqueue(greet.draft(name))).id

@app.post("/slow")
async def enqueue_slow(client: Client) -> str:
    return (await client.enqueue(slow.draft())).id

@app.post("/break")
async def break_it() -> str:
    break_worker()
    return "broken"
"""

STARLETTE = """
from starlette.applications import Starlette
from starlette.responses import JSONResponse
from starlette.routing import Mount, Route

async def enqueue(request):
    return JSONResponse((await greet.aenqueue(request.path_params["name"])).id)

async def enqueue_slow(request):
    return JSONResponse((await slow.aenqueue()).id)

async def break_it(request):
    break_worker()
    return JSONResponse("broken")

routes = [Route("/greet/{{name}}", enqueue, methods=["POST"]), Route("/slow", enqueue_slow, methods=["POST"]),
          Route("/break", break_it, methods=["POST"]), Mount("/queue", dashboard)]
app = Starlette(routes=routes, lifespan=lifespan)
"""

LITESTAR = """
from litestar import Litestar, asgi, post
from litestar.params import FromPath
from litestar.types import Receive, Scope, Send

@post("/greet/{{name:str}}")
async def enqueue(name: FromPath[str]) -> str:
    return (await greet.aenqueue(name)).id

@post("/slow")
async def enqueue_slow() -> str:
    return (await slow.aenqueue()).id

@post("/break")
async def break_it() -> str:
    break_worker()
    return "broken"

@asgi("/queue", is_mount=True, copy_scope=True)
async def mounted(scope: Scope, receive: Receive, send: Send) -> None:
    path = "/queue" + (scope["path"].rstrip("/") or "/")  # Litestar has cut the path of the mount, and added a slash
    await dashboard({**scope, "root_path": "/queue", "path": path}, receive, send)

app = Litestar([enqueue, enqueue_slow, break_it, mounted], lifespan=[lifespan])
"""

FLASK = """
from a2wsgi import ASGIMiddleware
from flask import Flask
from werkzeug.middleware.dispatcher import DispatcherMiddleware

app = Flask(__name__)
app.wsgi_app = DispatcherMiddleware(app.wsgi_app, {{"/queue": ASGIMiddleware(dashboard)}})
{start}

@app.post("/greet/<name>")
def enqueue(name: str) -> str:
    return greet.enqueue(name).id

@app.post("/slow")
def enqueue_slow() -> str:
    return slow.enqueue().id

@app.post("/break")
def break_it() -> str:
    break_worker()
    return "broken"
"""

GUNICORN = """
def post_worker_init(worker):
    from shop import queue  # not above: a fork has no copy of the threads of its parent
    worker.relet = queue.worker(concurrency=4, poll_interval=0.1)
    worker.relet.start()

def worker_exit(server, worker):
    worker.relet.stop()
"""

START = "queue.worker(concurrency=4, poll_interval=0.1).start()"


def uvicorn(program: str) -> tuple[str, list[str]]:
    return program, ["uvicorn", "shop:app", "--host", "127.0.0.1", "--port"]


PROGRAMS = {
    "fastapi": uvicorn(FASTAPI),
    "starlette": uvicorn(STARLETTE),
    "litestar": uvicorn(LITESTAR),
    "flask run": (FLASK.replace("{start}", START), ["flask", "--app", "shop", "run", "--no-debugger", "--port"]),
    "gunicorn": (FLASK.replace("{start}", ""), ["gunicorn", "shop:app", "--config", "gunicorn.conf.py", "--bind"]),
}
WITHIN = 60.0


@contextmanager
def serving(name: str, database: Database, folder: Path) -> Iterator[tuple[subprocess.Popen[str], str]]:
    """A server of this kind, which answers requests; and its address."""
    program, command = PROGRAMS[name]
    head = HEAD.replace("{url!r}", repr(database.url)).replace("{schema!r}", repr(database.schema))
    (folder / "shop.py").write_text((head + program).replace("{{", "{").replace("}}", "}"))
    (folder / "gunicorn.conf.py").write_text(GUNICORN)
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        port = int(probe.getsockname()[1])
    address = f"127.0.0.1:{port}" if name == "gunicorn" else str(port)
    with (folder / "output.txt").open("w") as output:
        server = subprocess.Popen(
            [sys.executable, "-m", *command, address],
            cwd=folder, env=os.environ | {"PYTHONPATH": str(folder)}, stdout=output, stderr=output, text=True,
        )  # fmt: skip
    try:
        wait_for_port(port, server, folder)
        yield server, f"http://127.0.0.1:{port}"
    finally:
        server.kill()
        server.wait()


def wait_for_port(port: int, server: subprocess.Popen[str], folder: Path) -> None:
    give_up = time.monotonic() + WITHIN
    while time.monotonic() < give_up and server.poll() is None:
        with socket.socket() as probe:
            if probe.connect_ex(("127.0.0.1", port)) == 0:
                return
        time.sleep(0.05)
    pytest.fail(server_output(folder))


@pytest.fixture(params=PROGRAMS)
def kind(request: pytest.FixtureRequest) -> str:
    return str(request.param)


@pytest.fixture(params=["sqlite", *PG_KINDS])
def database(request: pytest.FixtureRequest, tmp_path: Path, schema: str) -> Iterator[Database]:
    """A SQLite file, or a schema of PostgreSQL that does not exist yet."""
    if request.param == "sqlite":
        yield Database("sqlite", f"sqlite:///{tmp_path}/jobs.db", "relet")
    else:
        server = request.config.stash[SERVERS].get(request.param)
        yield Database(request.param, server.dsn, schema)
        server.drop_schema(schema)


@pytest.fixture
def app(database: Database) -> Iterator[App]:
    with database.app() as app:
        app.client.migrate()
        yield app


def posted(address: str, path: str) -> str:
    answer = httpx.post(f"{address}{path}", timeout=WITHIN)
    assert answer.is_success, answer.text
    return answer.text.strip('"')


def until(condition: Callable[[], bool], folder: Path) -> None:
    give_up = time.monotonic() + WITHIN
    while not condition():
        assert time.monotonic() < give_up, server_output(folder)
        time.sleep(0.02)


def state(app: App, job: str) -> State:
    found = app.client.get(job)
    assert found is not None
    return found.state


def test_a_server_runs_jobs_shows_the_dashboard_and_lets_jobs_end_when_it_is_stopped(
    kind: str, app: App, database: Database, tmp_path: Path
) -> None:
    with serving(kind, database, tmp_path) as (server, address):
        job = posted(address, "/greet/Ada")
        assert app.client.result(job, timeout=WITHIN) == "Hello, Ada"
        check_the_dashboard(address, job)
        job = posted(address, "/slow")
        until(lambda: state(app, job) is State.RUNNING, tmp_path)
        server.send_signal(signal.SIGINT if kind == "flask run" else signal.SIGTERM)
        server.wait(WITHIN)
        assert state(app, job) is State.SUCCEEDED, server_output(tmp_path)
        assert app.client.workers() == []


def check_the_dashboard(address: str, job: str) -> None:
    """It is mounted at /queue, and its page of a job shows the result, "Hello, Ada"."""
    with httpx.Client(headers={"Authorization": "Bearer a token of 16 characters"}, timeout=WITHIN) as signed_in:
        assert signed_in.get(f"{address}/queue/health").is_success
        page = signed_in.get(f"{address}/queue/jobs/{job}")
    assert page.is_success
    assert "/queue/static/" in page.text, "links begin with the path of the mount"
    assert "Hello, Ada" in page.text
    refused = httpx.get(f"{address}/queue/api/jobs", timeout=WITHIN)
    assert refused.status_code == 401


#: The fast suite has one server of ASGI and one of WSGI: in the others, Relet's code is the same.
SAME_CODE = pytest.mark.long("starlette", "litestar", "flask run")


@SAME_CODE
def test_a_server_does_not_go_on_without_its_worker(kind: str, app: App, database: Database, tmp_path: Path) -> None:
    with serving(kind, database, tmp_path) as (server, address):
        posted(address, "/break")
        if kind == "gunicorn":  # its master replaces the process
            until(lambda: server_output(tmp_path).count("Booting worker") > 1, tmp_path)
        else:
            server.wait(WITHIN)
        assert "The worker has ended by an error" in server_output(tmp_path)
        assert "the worker is broken" in server_output(tmp_path)


LATER_RELEASE = "update {table} set oldest = 1000, version = version + 1000, release = '99.0'"


@SAME_CODE
def test_a_server_does_not_start_without_its_worker(kind: str, app: App, database: Database, tmp_path: Path) -> None:
    if database.is_postgres:
        with psycopg.connect(database.url) as connection:
            connection.execute(LATER_RELEASE.format(table=f"{database.schema}.migrations").encode())
    else:
        with closing(sqlite3.connect(tmp_path / "jobs.db")) as file, file:
            file.execute(LATER_RELEASE.format(table="relet_migrations"))
    with suppress(pytest.fail.Exception), serving(kind, database, tmp_path) as (server, _):
        server.wait(WITHIN)  # gunicorn listens before it starts the processes that serve
    assert "SchemaMismatch" in server_output(tmp_path)
    assert "Application startup complete" not in server_output(tmp_path)


def server_output(folder: Path) -> str:
    return (folder / "output.txt").read_text()
