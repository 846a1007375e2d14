"""Workers in the programs of web frameworks, under real servers: jobs run, the end is in order, no death is silent."""

from __future__ import annotations

import os
import signal
import socket
import sqlite3
import subprocess
import sys
import time
from collections.abc import Iterator
from contextlib import closing, contextmanager, suppress
from pathlib import Path

import httpx
import pytest

from relet import App, State

HEAD = """
import threading
from contextlib import asynccontextmanager
from relet import App, Worker

queue = App({url!r})

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
"""

FASTAPI = """
from typing import Annotated
from fastapi import Depends, FastAPI
from relet import AsyncClient
from relet.web import create_app

app = FastAPI(lifespan=lifespan)
app.mount("/queue", create_app(queue, operate={{"ada": "a token of 16 characters"}}))

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
from starlette.routing import Route

async def enqueue(request):
    return JSONResponse((await greet.aenqueue(request.path_params["name"])).id)

async def enqueue_slow(request):
    return JSONResponse((await slow.aenqueue()).id)

async def break_it(request):
    break_worker()
    return JSONResponse("broken")

routes = [Route("/greet/{{name}}", enqueue, methods=["POST"]), Route("/slow", enqueue_slow, methods=["POST"]),
          Route("/break", break_it, methods=["POST"])]
app = Starlette(routes=routes, lifespan=lifespan)
"""

LITESTAR = """
from litestar import Litestar, post

@post("/greet/{{name:str}}")
async def enqueue(name: str) -> str:
    return (await greet.aenqueue(name)).id

@post("/slow")
async def enqueue_slow() -> str:
    return (await slow.aenqueue()).id

@post("/break")
async def break_it() -> str:
    break_worker()
    return "broken"

app = Litestar([enqueue, enqueue_slow, break_it], lifespan=[lifespan])
"""

FLASK = """
from flask import Flask

app = Flask(__name__)
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
from shop import queue

def post_worker_init(worker):
    worker.relet = queue.worker(concurrency=4, poll_interval=0.1)
    worker.relet.start()

def worker_exit(server, worker):
    worker.relet.stop()
"""

START = "queue.worker(concurrency=4, poll_interval=0.1).start()"


def uvicorn(program: str) -> tuple[str, list[str]]:
    return program, ["uvicorn", "shop:app", "--host", "127.0.0.1", "--port"]


SERVERS = {
    "fastapi": uvicorn(FASTAPI),
    "starlette": uvicorn(STARLETTE),
    "litestar": uvicorn(LITESTAR),
    "flask run": (FLASK.format(start=START), ["flask", "--app", "shop", "run", "--no-debugger", "--port"]),
    "gunicorn": (FLASK.format(start=""), ["gunicorn", "shop:app", "--config", "gunicorn.conf.py", "--bind"]),
}
WITHIN = 60.0


@contextmanager
def serving(name: str, url: str, folder: Path) -> Iterator[tuple[subprocess.Popen[str], str]]:
    """A server of this kind, which answers requests; and its address."""
    program, command = SERVERS[name]
    (folder / "shop.py").write_text(HEAD.format(url=url) + program.replace("{{", "{").replace("}}", "}"))
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


@pytest.fixture(params=SERVERS)
def kind(request: pytest.FixtureRequest) -> str:
    return str(request.param)


@pytest.fixture
def url(tmp_path: Path) -> str:
    return f"sqlite:///{tmp_path}/jobs.db"


def posted(address: str, path: str) -> str:
    answer = httpx.post(f"{address}{path}", timeout=WITHIN)
    assert answer.is_success, answer.text
    return answer.text.strip('"')


def test_a_server_runs_jobs_and_lets_them_end_when_it_is_stopped(kind: str, url: str, tmp_path: Path) -> None:
    with App(url) as app, serving(kind, url, tmp_path) as (server, address):
        assert app.client.result(posted(address, "/greet/Ada"), timeout=WITHIN) == "Hello, Ada"
        if kind == "fastapi":
            signed_in = {"Authorization": "Bearer a token of 16 characters"}
            assert httpx.get(f"{address}/queue/health", headers=signed_in, timeout=WITHIN).is_success
        job = posted(address, "/slow")
        give_up = time.monotonic() + WITHIN
        while (found := app.client.get(job)) is not None and found.state is not State.RUNNING:
            assert time.monotonic() < give_up
            time.sleep(0.02)
        server.send_signal(signal.SIGINT if kind == "flask run" else signal.SIGTERM)
        server.wait(WITHIN)
        found = app.client.get(job)
        assert found is not None
        assert found.state is State.SUCCEEDED, server_output(tmp_path)
        assert [worker.state for worker in app.client.workers() if worker.state == "live"] == []


def test_a_server_does_not_go_on_without_its_worker(kind: str, url: str, tmp_path: Path) -> None:
    with serving(kind, url, tmp_path) as (server, address):
        posted(address, "/break")
        if kind == "gunicorn":  # its master replaces the process
            give_up = time.monotonic() + WITHIN
            while server_output(tmp_path).count("Booting worker") < 2:
                assert time.monotonic() < give_up, server_output(tmp_path)
                time.sleep(0.05)
        else:
            server.wait(WITHIN)
        assert "The worker has ended by an error" in server_output(tmp_path)
        assert "the worker is broken" in server_output(tmp_path)


def test_a_server_does_not_start_without_its_worker(kind: str, url: str, tmp_path: Path) -> None:
    with App(url) as app:
        app.client.migrate()
    with closing(sqlite3.connect(tmp_path / "jobs.db")) as connection, connection:
        connection.execute("update relet_migrations set oldest = 1000, version = version + 1000, release = '99.0'")
    with suppress(pytest.fail.Exception), serving(kind, url, tmp_path) as (server, _):
        server.wait(WITHIN)  # gunicorn listens before it starts the processes that serve
    assert server_output(tmp_path).count("SchemaMismatch") > 0
    assert "Application startup complete" not in server_output(tmp_path)


def server_output(folder: Path) -> str:
    return (folder / "output.txt").read_text()
