"""What answers a request once it is inside: pages, the API, live views, metrics and health.

Everything is asked of the client, in a few threads of its own; nothing here knows the store.
"""

from __future__ import annotations

import asyncio
import base64
import json
import logging
import secrets
import time
from collections.abc import AsyncGenerator, AsyncIterator, Awaitable, Callable, Iterable, Mapping, Sequence
from contextlib import AsyncExitStack, aclosing, suppress
from dataclasses import dataclass
from datetime import UTC, datetime
from typing import Any, TypeVar
from urllib.parse import SplitResult, parse_qs, quote, urlsplit

from starlette.requests import Request
from starlette.responses import FileResponse, PlainTextResponse, RedirectResponse, Response, StreamingResponse

from .._client.inspection import reading_until
from .._client.web_sessions import EndedSessions
from .._core.redact import redactor, without_passwords
from .._threads import DaemonThreadPool
from .._version import __version__
from ..app import App
from ..errors import ReletError
from . import api, pages
from .api.requests import MOST_SCANNED
from .auth import Caller, Keys, Role
from .metrics import content_type, exposition, wants_openmetrics
from .pages import Page, View
from .problems import Refusal, refusal_of
from .security import MOST_FIELDS, path_of, root_of
from .sse import Live, TooMany

log = logging.getLogger("relet.web")

T = TypeVar("T")
Parameters = Mapping[str, str]

TIME_LIMIT = 20.0  # seconds that an answer may take
AT_ONCE = 4  # answers that are made at the same time: the web takes no more than that from the others
LONGEST_PARAMETER = 2000
SAID = "relet_said"
MOST_PARAMETERS = 200
FORM_TOKEN = secrets.token_urlsafe(16)  # stands in views that several sessions share; no job can know it
IN_PATHS = "/:@!$&'()*+,;=~"  # what needs no quoting there
LIMITS = {role: api.Limits(most_scan=most) for role, most in MOST_SCANNED.items()}
FOR_EVER = "private, max-age=31536000, immutable"


@dataclass(frozen=True)
class Asked:
    """Who asks for something to look at, and how."""

    caller: Caller
    root: str
    path: str  # below the root, quoted
    query: str
    csrf: str = FORM_TOKEN


class Rooms:
    """How much is done at the same time. Those who may only look leave a place to those who may act, and the question
    whether a session was signed out waits for no page."""

    def __init__(self) -> None:
        self._all, self._readers = asyncio.Semaphore(AT_ONCE), asyncio.Semaphore(AT_ONCE - 1)
        self.sessions = asyncio.Semaphore(AT_ONCE)

    def of(self, role: Role | None) -> list[asyncio.Semaphore]:
        """What a request of this role needs, in the order in which it is taken."""
        return [self._all] if role == "operate" else [self._readers, self._all]


class Site:
    """What all requests share."""

    def __init__(self, app: App, tenant: str | None, redact: Iterable[str] | None, keys: Keys) -> None:
        self.app = app
        self.client = app.client if tenant is None else app.client.tenant(tenant)
        self.redact = app.redact if redact is None else redactor(redact)
        self._keys = keys
        self._ended = EndedSessions(lambda: self.client._store)
        self._threads = DaemonThreadPool("relet-web")
        self._rooms, self._live = Rooms(), Live()
        self._loop: asyncio.AbstractEventLoop | None = None

    async def call(self, role: Role | None, work: Callable[..., T], *args: Any) -> T:
        """Do something in a thread, not too many at once, and not for ever."""
        self._be_in_this_loop()
        return await self._within(self._rooms.of(role), work, *args)

    async def _within(self, rooms: Sequence[asyncio.Semaphore], work: Callable[..., T], *args: Any) -> T:
        until = time.monotonic() + TIME_LIMIT
        try:
            async with asyncio.timeout(TIME_LIMIT), AsyncExitStack() as stack:
                for room in rooms:
                    await stack.enter_async_context(room)
                return await asyncio.shield(self._call(stack.pop_all(), until, work, *args))
        except ReletError as error:
            refusal = refusal_of(error)
            if refusal is None:
                raise
            log.warning("%s: %s", type(error).__name__, without_passwords(str(error)))
            raise refusal from None
        except TimeoutError:
            detail = f"the store did not answer within {TIME_LIMIT:g} s; ask for less, or try again"
            raise Refusal("too-slow", detail) from None

    def _call(self, rooms: AsyncExitStack, until: float, work: Callable[..., T], *args: Any) -> asyncio.Task[T]:
        """The room is taken until the thread is done, also if the request has ended: it still asks the store,
        which ends what only reads at that moment."""

        def limited() -> T:
            with reading_until(until):
                return work(*args)

        async def call() -> T:
            async with rooms:
                return await self._threads.call(limited)

        def done(task: asyncio.Task[T]) -> None:
            if not task.cancelled():
                task.exception()  # what still waits gets it

        task = asyncio.create_task(call())
        task.add_done_callback(done)
        return task

    def _be_in_this_loop(self) -> None:
        """What is waited for belongs to a loop; tests, and servers that reload, have one after another."""
        loop = asyncio.get_running_loop()
        if self._loop is not loop:
            self._loop, self._rooms, self._live = loop, Rooms(), Live()

    # Sessions

    async def end(self, caller: Caller) -> None:
        """Sign a session out, for every process and also after a restart."""
        self._be_in_this_loop()
        mark, seconds = self._keys.ending(caller.session or "")
        await self._within([self._rooms.sessions], self._ended.add, mark, seconds)

    async def is_ended(self, caller: Caller) -> bool:
        """Whether the session was signed out."""
        if caller.session is None:
            return False
        self._be_in_this_loop()
        return await self._within([self._rooms.sessions], self._ended.has, self._keys.ending(caller.session)[0])

    # Pages

    async def page(self, function: Callable[..., Page], request: Request) -> Response:
        """A page of the dashboard, with what came of the action before it."""
        asked = self._asked(request)
        message, good = _said(request)
        view = self.view(asked, message, good)
        page, html = await self.call(asked.caller.role, _rendered, function, view, request.path_params, False)
        response = Response(html, page.status, media_type="text/html")
        if message:
            response.delete_cookie(SAID, path=asked.root or "/")
        return response

    def look_at(self, function: Callable[..., Page], asked: Asked, parameters: Parameters) -> str:
        """The inside of a page."""
        return _rendered(function, self.view(asked), parameters, True)[1]

    async def act(self, request: Request) -> Response:
        """Do what a confirmation asked about. The page that comes next tells what came of it."""
        asked = self._asked(request)
        form = _fields((await request.body()).decode("utf-8", "replace"), MOST_FIELDS)
        outcome = await self.call(asked.caller.role, pages.act, self.view(asked), request.path_params["action"], form)
        if outcome.again is not None:
            page, view = outcome.again
            return Response(pages.render(page, view), page.status, media_type="text/html")
        said = base64.urlsafe_b64encode(json.dumps([outcome.message[:400], outcome.good]).encode()).decode()
        options: dict[str, Any] = {"path": asked.root or "/", "httponly": True, "samesite": "strict"}
        response = RedirectResponse(asked.root + outcome.to, 303)
        response.set_cookie(SAID, said, 30, **options, secure=request.url.scheme == "https")
        return response

    async def static(self, request: Request) -> Response:
        """Stylesheet, script, icon: their address changes with them."""
        files = {path.name: path for path in pages.STATIC.iterdir()}
        path = files.get(request.path_params["name"])
        if path is None:
            raise Refusal("not-found", "there is no such file")
        return FileResponse(path, headers={"cache-control": FOR_EVER})

    def view(self, asked: Asked, message: str = "", good: bool = True) -> View:
        """What a page is given."""
        query = _fields(asked.query, MOST_PARAMETERS)
        several = {name: [value[:LONGEST_PARAMETER] for value in values] for name, values in query.items()}
        return View(
            client=self.client.acting_as(f"web:{asked.caller.name}"),
            query={name: values[-1] for name, values in several.items()},
            several=several,
            role=asked.caller.role,
            who=asked.caller.name,
            root=asked.root,
            csrf=asked.csrf,
            redact=self.redact,
            now=datetime.now(UTC),
            tasks=self.app.tasks,
            message=message,
            good=good,
            here=asked.path + (f"?{asked.query}" if asked.query else ""),
        )

    # The API

    async def answer(self, endpoint: api.Endpoint, request: Request) -> Response:
        """An endpoint of the API."""
        asked, body = self._asked(request), await request.body()
        given = (endpoint, asked, request.path_params, body, dict(request.headers))
        reply = await self.call(asked.caller.role, self._reply, *given)
        return Response(reply.body, reply.status, reply.headers, reply.media_type)

    def look_up(self, endpoint: api.Endpoint, asked: Asked, parameters: Parameters) -> str:
        """The answer of an endpoint that changes nothing."""
        return self._reply(endpoint, asked, parameters, b"", {}).body.decode()

    def _reply(
        self, endpoint: api.Endpoint, asked: Asked, parameters: Parameters, body: bytes, headers: Mapping[str, str]
    ) -> api.Reply:
        call = api.Call(
            app=self.app,
            client=self.client.acting_as(f"web:{asked.caller.name}"),
            caller=asked.caller.name,
            idempotency_key=headers.get("idempotency-key"),
            path=dict(parameters),
            query=[(name, value) for name, values in _fields(asked.query, MOST_PARAMETERS).items() for value in values],
            body=body,
            content_type=headers.get("content-type"),
            redact=self.redact,
            root=asked.root,
            limits=LIMITS[asked.caller.role],
        )
        return api.answer(endpoint, call)

    # Live views

    async def live(self, find: Callable[[str], tuple[Callable[..., str], Parameters]], request: Request) -> Response:
        """What a page shows, or an endpoint answers, sent again whenever it has changed."""
        self._be_in_this_loop()
        mine = self._asked(request)
        wanted = _address(request.query_params.get("page", "/"))
        shared = Asked(mine.caller, mine.root, wanted.path, wanted.query)
        look, parameters = find(wanted.path)
        who, key = mine.caller.name, (mine.root, wanted.path, wanted.query)
        is_page = not wanted.path.startswith("/api/")

        def dress(text: str) -> str:
            return text.replace(FORM_TOKEN, mine.csrf)

        try:
            name = "main" if is_page else "data"
            stream = self._live.stream(who, key, lambda: self.call(mine.caller.role, look, shared, parameters), name)
        except TooMany:
            raise Refusal("too-many-requests", "too many pages are live: close some") from None
        headers = {"cache-control": "no-store", "x-accel-buffering": "no"}
        if request.method == "HEAD":
            return Response(media_type="text/event-stream", headers=headers)
        events = _dressed(stream, dress, lambda: self.is_ended(mine.caller))
        return StreamingResponse(events, media_type="text/event-stream", headers=headers)

    # For machines

    async def health(self, request: Request) -> Response:
        """Whether the store answers."""
        try:
            await self.call(_role(request), self.client.workers)
        except Refusal as refusal:  # why is in the log: whoever may ask for health need not know where the store is
            return PlainTextResponse(f"the store does not answer: {refusal.detail}\n", 503)
        return PlainTextResponse("ok\n")

    async def metrics(self, request: Request) -> Response:
        """What Prometheus comes for."""
        openmetrics = wants_openmetrics(request.headers.get("accept", ""))
        text = await self.call(_role(request), self._exposed, openmetrics)
        return Response(text, headers={"content-type": content_type(openmetrics=openmetrics)})

    def _exposed(self, openmetrics: bool) -> str:
        client = self.client
        seen = (client.totals(), client.queues(), client.workers())
        return exposition(*seen, version=__version__, openmetrics=openmetrics)

    def _asked(self, request: Request) -> Asked:
        scope = request.scope
        path, query = quote(path_of(scope), safe=IN_PATHS), scope["query_string"].decode("latin-1")
        return Asked(scope["relet.caller"], root_of(scope), path, query, scope["relet.form_token"])


def _rendered(function: Callable[..., Page], view: View, parameters: Parameters, only_main: bool) -> tuple[Page, str]:
    page = pages.answer(function, view, **parameters)
    return page, pages.render(page, view, only_main=only_main)


def _said(request: Request) -> tuple[str, bool]:
    """What came of the action before, as the answer to it left it in a cookie."""
    with suppress(ValueError, TypeError, RecursionError):
        message, good = json.loads(base64.urlsafe_b64decode(request.cookies.get(SAID, "")))
        return str(message)[:400], bool(good)
    return "", True


def _fields(text: str, most: int) -> dict[str, list[str]]:
    """What a query string or a form holds."""
    try:
        return parse_qs(text, keep_blank_values=True, max_num_fields=most)
    except ValueError:
        raise Refusal("too-large", f"there are at most {most} fields") from None


def _address(text: str) -> SplitResult:
    try:
        return urlsplit(text)
    except ValueError as error:
        raise Refusal("malformed", f"page is no address: {error}") from None


async def _dressed(
    stream: AsyncGenerator[str, None], dress: Callable[[str], str], is_over: Callable[[], Awaitable[bool]]
) -> AsyncIterator[bytes]:
    """Events until the session is signed out; there is one every few seconds."""
    async with aclosing(stream):
        async for event in stream:
            try:
                if await is_over():
                    return
            except Refusal:  # the store is away: there is nothing new to see
                continue
            yield dress(event).encode()


def _role(request: Request) -> Role | None:
    caller: Caller | None = request.scope["relet.caller"]
    return None if caller is None else caller.role
