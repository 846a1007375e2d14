"""Web frameworks with relet, as docs/guides/fastapi.md has them. Type checkers must find nothing wrong here."""

from __future__ import annotations

from collections.abc import AsyncGenerator
from contextlib import asynccontextmanager
from typing import Annotated, cast

from fastapi import Depends, FastAPI
from flask import Flask
from litestar import Litestar, asgi, post
from litestar.params import FromPath
from litestar.types import ASGIApp, Receive, Scope, Send
from starlette.applications import Starlette
from starlette.requests import Request
from starlette.responses import JSONResponse
from starlette.routing import Mount, Route

from relet import App, AsyncClient, Worker
from relet.web import create_app

queue = App("sqlite:///:memory:")
web = create_app(queue, operate="at-least-16-characters", hosts=["shop.example.com"])


@queue.task
async def greet(name: str) -> str:
    return f"Hello, {name}"


@asynccontextmanager
async def lifespan(site: object) -> AsyncGenerator[None, None]:
    async with queue.worker(concurrency=4, shutdown_timeout=20, queues={"default": 2}) as worker:
        started: Worker = worker
        assert started.id
        yield


def client() -> AsyncClient:
    return queue.aclient


site = FastAPI(lifespan=lifespan)
site.mount("/queue", web)


@site.post("/greetings/{name}")
async def fastapi_greetings(name: str, client: Annotated[AsyncClient, Depends(client)]) -> str:
    job = await client.enqueue(greet.draft(name))
    return await client.result(job, timeout=30)


async def starlette_greetings(request: Request) -> JSONResponse:
    return JSONResponse((await greet.aenqueue(str(request.path_params["name"]))).id)


starlette = Starlette(
    routes=[Route("/greetings/{name}", starlette_greetings, methods=["POST"]), Mount("/queue", web)], lifespan=lifespan
)


@post("/greetings/{name:str}")
async def litestar_greetings(name: FromPath[str]) -> str:
    return (await greet.aenqueue(name)).id


@asgi("/queue", is_mount=True, copy_scope=True)
async def dashboard(scope: Scope, receive: Receive, send: Send) -> None:
    path = "/queue" + (scope["path"].rstrip("/") or "/")
    await cast("ASGIApp", web)(cast("Scope", {**scope, "root_path": "/queue", "path": path}), receive, send)


litestar = Litestar([litestar_greetings, dashboard], lifespan=[lifespan])
flask = Flask(__name__)


@flask.post("/greetings/<name>")
def flask_greetings(name: str) -> str:
    return greet.enqueue(name).id


def threaded() -> None:
    with queue.worker(stop_program=False, poll_interval=0.5) as worker:
        assert worker.id
    embedded = queue.worker()
    embedded.start().stop()
    embedded.stop()
