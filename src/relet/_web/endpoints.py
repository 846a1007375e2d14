"""Handlers of authenticated requests: pages, the API, live views, metrics and health.

They call the client, which blocks, in a few threads of a separate pool. Nothing here knows the store.
"""

from __future__ import annotations

import asyncio
import base64
import json
import logging
import secrets
import time
from collections.abc import AsyncGenerator, AsyncIterator, Awaitable, Callable, Iterable, Mapping
from contextlib import AsyncExitStack, aclosing, suppress
from dataclasses import dataclass
from datetime import UTC, datetime
from functools import cached_property
from typing import Any, Literal, TypeVar
from urllib.parse import SplitResult, parse_qs, quote, urlsplit

from starlette.requests import Request
from starlette.responses import FileResponse, PlainTextResponse, RedirectResponse, Response, StreamingResponse

from .._client.client import Client
from .._client.inspection import reading_until
from .._client.web_sessions import EndedSessions
from .._core.redact import redactor, without_passwords
from .._threads import DaemonThreadPool
from .._version import __version__
from ..app import App
from ..errors import ReletError
from . import api, pages
from .api.requests import MAX_SCANNED
from .app_path import app_path
from .auth import Principal, Role, TokenAuth
from .metrics import content_type, exposition, wants_openmetrics
from .pages import Page, PageContext
from .problems import Refusal, refusal_of
from .replica_reads import COOKIE, KEPT, ReplicaReads, behind
from .security import MAX_FIELDS, PATH_SAFE, cookie_path, is_https, path_of, root_of
from .sse import Live, TooMany

log = logging.getLogger("relet.web")

T = TypeVar("T")
Parameters = Mapping[str, str]
Handler = Callable[[Request], Awaitable[Response]]
CallKind = Role | Literal["session"]

MAX_HISTOGRAMS = 100  # queues whose histograms are exported, each with more than fifty lines
TIME_LIMIT = 20.0  # seconds that a response may take
MAX_CONCURRENT = 4  # requests handled at the same time, so that the web leaves database connections to others
LONGEST_PARAMETER = 2000
FLASH_COOKIE = "relet_said"
MAX_PARAMETERS = 200
# A placeholder in live views, which sessions share. It is random, so that no job can contain it.
FORM_TOKEN = secrets.token_urlsafe(16)
LIMITS = {role: api.Limits(max_scan=limit) for role, limit in MAX_SCANNED.items()}
CACHE_FOREVER = "private, max-age=31536000, immutable"


@dataclass(frozen=True)
class RequestContext:
    """A request to a page or an endpoint: its principal and its URL."""

    principal: Principal
    root: str
    path: str  # below the root, quoted
    query: str
    csrf: str = FORM_TOKEN


def _concurrency_limits() -> dict[CallKind, list[asyncio.Semaphore]]:
    """The semaphores that each kind of call acquires, in order.

    Readers leave one slot to operators. Session checks have separate slots, so they never wait for a page.
    """
    everyone, readers = asyncio.Semaphore(MAX_CONCURRENT), asyncio.Semaphore(MAX_CONCURRENT - 1)
    sessions = asyncio.Semaphore(MAX_CONCURRENT)
    return {"operate": [everyone], "read": [readers, everyone], "session": [sessions]}


def for_role(role: Role, handler: Handler) -> Handler:
    """A handler for this role only. It reports its time in `Server-Timing`."""

    async def guarded(request: Request) -> Response:
        principal = request.scope["relet.principal"]
        if role == "operate" and principal.role != "operate":
            raise Refusal("forbidden", "This makes changes and needs an operator token.")
        began = time.perf_counter()
        response = await handler(request)
        response.headers["server-timing"] = f"total;dur={1000 * (time.perf_counter() - began):.1f}"
        return response

    return guarded


class Endpoints:
    """The request handlers, with the client, threads and limits that all requests share."""

    def __init__(self, app: App, tenant: str | None, redact: Iterable[str] | None, auth: TokenAuth) -> None:
        self.app = app
        self._decoding_client = app.client if tenant is None else app.client.tenant(tenant)
        self.redact = app.redact if redact is None else redactor(redact)
        self._auth = auth
        self._tasks = app.tasks  # a live view: tasks registered later are in it
        self._ended = EndedSessions(self._decoding_client)
        self._replica_reads = ReplicaReads()
        self._threads = DaemonThreadPool("relet-web")
        self._limits, self._live = _concurrency_limits(), Live()
        self._loop: asyncio.AbstractEventLoop | None = None

    @property
    def client(self) -> Client:
        """A client that does not decode. Made anew each time, because a test may replace the store of the app."""
        return self._decoding_client._without_codecs()

    async def call(self, kind: CallKind, work: Callable[..., T], *args: Any) -> T:
        """Call `work` in a thread, within the concurrency limits of this kind of call and within `TIME_LIMIT`."""
        self._bind_to_loop()
        until = time.monotonic() + TIME_LIMIT
        try:
            async with asyncio.timeout(TIME_LIMIT), AsyncExitStack() as stack:
                for semaphore in self._limits[kind]:
                    await stack.enter_async_context(semaphore)
                task = asyncio.create_task(self._call_in_thread(stack.pop_all(), until, work, *args))
                task.add_done_callback(_retrieve_exception)
                return await asyncio.shield(task)
        except ReletError as error:
            refusal = refusal_of(error)
            if refusal is None:
                raise
            log.warning("%s: %s", type(error).__name__, without_passwords(str(error)))
            raise refusal from None
        except TimeoutError:
            detail = f"The store did not answer within {TIME_LIMIT:g} s. Request less, or try again."
            raise Refusal("too-slow", detail) from None

    async def _call_in_thread(self, acquired: AsyncExitStack, until: float, work: Callable[..., T], *args: Any) -> T:
        """Call `work` in a thread. The semaphores stay acquired until it returns, even if the request has ended.

        The thread still uses the database by then. At `until`, the database cancels queries that only read.
        """
        async with acquired:
            with reading_until(until):  # the thread runs in a copy of this context
                return await self._threads.call(work, *args)

    def _bind_to_loop(self) -> None:
        """Recreate semaphores and streams if the event loop has changed, as in tests and servers that reload."""
        loop = asyncio.get_running_loop()
        if self._loop is not loop:
            self._loop, self._limits, self._live = loop, _concurrency_limits(), Live()

    def _request_context(self, request: Request) -> RequestContext:
        scope, principal = request.scope, request.scope["relet.principal"]
        self._replica_reads.record_cookie(principal.name, request.cookies.get(COOKIE))
        path, query = quote(path_of(scope), safe=PATH_SAFE), scope["query_string"].decode("latin-1")
        return RequestContext(principal, root_of(scope), path, query, scope["relet.form_token"])

    def _client_of(self, principal: Principal) -> Client:
        """A client for changes: the audit trail records the name of the principal."""
        return self.client.acting_as(f"web:{principal.name}")

    # Sessions

    async def end(self, principal: Principal) -> None:
        """Sign a session out in the database, so that every process knows it, also after a restart."""
        mark, seconds = self._auth.end_mark(principal.session or "")
        await self.call("session", self._ended.add, mark, seconds)

    async def is_ended(self, principal: Principal) -> bool:
        """True if the session was signed out."""
        if principal.session is None:
            return False
        mark, _ = self._auth.end_mark(principal.session)
        return await self.call("session", self._ended.has, mark)

    # Pages

    async def page(self, function: Callable[..., Page], request: Request) -> Response:
        """Respond with a page of the dashboard, and with the result of the action before it."""
        context = self._request_context(request)
        message, succeeded = _flash_message(request)

        def respond() -> tuple[Page, str]:
            view = self.page_context(context, message=message, succeeded=succeeded)
            return pages.respond(function, view, request.path_params)

        page, html = await self.call(context.principal.role, respond)
        response = Response(html, page.status, media_type="text/html")
        if message:
            response.delete_cookie(FLASH_COOKIE, path=cookie_path(request.scope))
        return response

    def render_main(self, function: Callable[..., Page], context: RequestContext, parameters: Parameters) -> str:
        """The content of a page's <main> element."""
        _, html = pages.respond(function, self.page_context(context), parameters, only_main=True)
        return html

    async def act(self, request: Request) -> Response:
        """Perform a confirmed action. The next page displays its result, which travels in a cookie."""
        context = self._request_context(request)
        form = _fields((await request.body()).decode("utf-8", "replace"), MAX_FIELDS)
        view = self.page_context(context, client=self._client_of(context.principal))
        action = request.path_params["action"]
        outcome, position = await self.call(context.principal.role, self._act, view, action, form)
        if outcome.form_again is not None:
            page, view = outcome.form_again
            return Response(pages.render(page, view), page.status, media_type="text/html")
        flash = base64.urlsafe_b64encode(json.dumps([outcome.message[:400], outcome.succeeded]).encode()).decode()
        options: dict[str, Any] = {"path": cookie_path(request.scope), "httponly": True, "samesite": "strict"}
        response = RedirectResponse(context.root + outcome.to, 303)
        response.set_cookie(FLASH_COOKIE, flash, 30, **options, secure=is_https(request))
        if position is not None:
            response.set_cookie(COOKIE, str(position), KEPT, **options, secure=is_https(request))
        return response

    def _act(self, view: PageContext, action: str, form: Mapping[str, list[str]]) -> tuple[pages.Outcome, int | None]:
        """Perform an action. Returns its outcome, and the position of the change if there is a replica."""
        outcome = pages.act(view, action, form)
        return outcome, self._replica_reads.record(self.client, view.who)

    async def static(self, request: Request) -> Response:
        """Respond with the stylesheet, script or icon. Their URL changes with their content."""
        files = {path.name: path for path in pages.STATIC.iterdir()}
        path = files.get(request.path_params["name"])
        if path is None:
            raise Refusal("not-found", "There is no such file.")
        return FileResponse(path, headers={"cache-control": CACHE_FOREVER})

    def page_context(
        self, context: RequestContext, *, client: Client | None = None, message: str = "", succeeded: bool = True
    ) -> PageContext:
        """The context from which a page function builds its page. It may ask the replica how far it is behind.

        What decides reads the primary: the pages that ask for confirmation, and actions, which pass their client.
        """
        source: Callable[[], str] = str
        if client is None:
            client = self.client
            if not context.path.startswith("/confirm/"):
                client, source = self._replica_reads.choose(client, context.principal.name)
        query: dict[str, list[str]] = {}
        for name, values in _fields(context.query, MAX_PARAMETERS).items():
            query[name] = [value[:LONGEST_PARAMETER] for value in values]
        return PageContext(
            client=client,
            source=source,
            query={name: values[-1] for name, values in query.items()},
            query_lists=query,
            role=context.principal.role,
            who=context.principal.name,
            root=context.root,
            csrf=context.csrf,
            redact=self.redact,
            now=datetime.now(UTC),
            tasks=self._tasks,
            message=message,
            succeeded=succeeded,
            here=context.path + (f"?{context.query}" if context.query else ""),
            app_path=self._app_path,
        )

    @cached_property
    def _app_path(self) -> str:
        # Not in __init__: the module of the app may not have assigned it to its variable by then.
        return app_path(self.app)

    # The API

    async def answer(self, endpoint: api.Endpoint, request: Request) -> Response:
        """Respond to a request to the API."""
        context, body = self._request_context(request), await request.body()
        arguments = (endpoint, context, request.path_params, body, dict(request.headers))
        reply = await self.call(context.principal.role, self._reply, *arguments)
        return Response(reply.body, reply.status, reply.headers, reply.media_type)

    def api_text(self, endpoint: api.Endpoint, context: RequestContext, parameters: Parameters) -> str:
        """The response body of a GET endpoint, for live views."""
        return self._reply(endpoint, context, parameters, b"", {}).body.decode()

    def _reply(
        self,
        endpoint: api.Endpoint,
        context: RequestContext,
        parameters: Parameters,
        body: bytes,
        headers: Mapping[str, str],
    ) -> api.Reply:
        query: list[tuple[str, str]] = []
        for name, values in _fields(context.query, MAX_PARAMETERS).items():
            query += [(name, value) for value in values]
        reads, who = endpoint.role == "read", context.principal.name
        client = self._replica_reads.choose(self.client, who)[0] if reads else self._client_of(context.principal)
        call = api.Call(
            app=self.app,
            client=client,
            caller=context.principal.name,
            idempotency_key=headers.get("idempotency-key"),
            path=dict(parameters),
            query=query,
            body=body,
            content_type=headers.get("content-type"),
            redact=self.redact,
            root=context.root,
            limits=LIMITS[context.principal.role],
        )
        reply = api.answer(endpoint, call)
        if not reads:
            self._replica_reads.record(client, who)
        return reply

    # Live views

    async def live(self, find: Callable[[str], tuple[Callable[..., str], Parameters]], request: Request) -> Response:
        """Stream a page or the response of an endpoint, again whenever it has changed."""
        self._bind_to_loop()
        mine = self._request_context(request)
        wanted = _address(request.query_params.get("page", "/"))
        shared = RequestContext(mine.principal, mine.root, wanted.path, wanted.query)
        render, parameters = find(wanted.path)
        who, key = mine.principal.name, (mine.root, wanted.path, wanted.query)
        is_page = not wanted.path.startswith("/api/")

        def insert_form_token(text: str) -> str:
            return text.replace(FORM_TOKEN, mine.csrf)

        try:
            name = "main" if is_page else "data"
            stream = self._live.stream(
                who, key, lambda: self.call(mine.principal.role, render, shared, parameters), name
            )
        except TooMany:
            raise Refusal("too-many-requests", "Too many live pages are open. Close some.") from None
        headers = {"cache-control": "no-store", "x-accel-buffering": "no"}
        if request.method == "HEAD":
            return Response(media_type="text/event-stream", headers=headers)
        events = _with_form_token(stream, insert_form_token, lambda: self.is_ended(mine.principal))
        return StreamingResponse(events, media_type="text/event-stream", headers=headers)

    # For machines

    async def health(self, request: Request) -> Response:
        """Respond with 200 if the store answers, else with 503."""
        try:
            text = await self.call(_role(request), self._health_text)
        except Refusal as refusal:  # the cause is only in the log: /health may be open, and must not reveal the host
            return PlainTextResponse(f"The store does not answer: {refusal.detail}\n", 503)
        return PlainTextResponse(text)

    def _health_text(self) -> str:
        """The primary must answer. A replica that does not changes nothing but the text."""
        client = self.client
        client.workers()
        status = client._replica_status()
        if status is None:
            return "ok\n"
        return f"ok\nreplica: {status.problem or behind(status)}\n"

    async def metrics(self, request: Request) -> Response:
        """Respond with the metrics for Prometheus."""
        openmetrics = wants_openmetrics(request.headers.get("accept", ""))
        text = await self.call(_role(request), self._metrics_text, openmetrics)
        return Response(text, headers={"content-type": content_type(openmetrics=openmetrics)})

    def _metrics_text(self, openmetrics: bool) -> str:
        client = self.client.replica()
        totals, together = client._exported_totals(MAX_HISTOGRAMS)
        return exposition(
            totals,
            client.queues(),
            client.workers(),
            version=__version__,
            openmetrics=openmetrics,
            replica=client._replica_status(),
            together=together,
        )


def _retrieve_exception(task: asyncio.Task[Any]) -> None:
    """Prevent asyncio from logging an exception for which no request waits any more. One that waits raises it."""
    if not task.cancelled():
        task.exception()


def _flash_message(request: Request) -> tuple[str, bool]:
    """The result of the previous action, from the cookie that its response set."""
    with suppress(ValueError, TypeError, RecursionError):
        message, succeeded = json.loads(base64.urlsafe_b64decode(request.cookies.get(FLASH_COOKIE, "")))
        return str(message)[:400], bool(succeeded)
    return "", True


def _fields(text: str, limit: int) -> dict[str, list[str]]:
    """The fields of a query string or a form."""
    try:
        return parse_qs(text, keep_blank_values=True, max_num_fields=limit)
    except ValueError:
        raise Refusal("too-large", f"The request has more than {limit} fields.") from None


def _address(text: str) -> SplitResult:
    try:
        return urlsplit(text)
    except ValueError as error:
        raise Refusal("malformed", f"The parameter page is not a URL: {error}.") from None


async def _with_form_token(
    stream: AsyncGenerator[str, None], insert_form_token: Callable[[str], str], is_over: Callable[[], Awaitable[bool]]
) -> AsyncIterator[bytes]:
    """Pass events on with the session's own form token, until the session is signed out.

    Keep-alive events make this check run every few seconds.
    """
    async with aclosing(stream):
        async for event in stream:
            try:
                if await is_over():
                    return
            except Refusal:  # the database is unreachable, so there are no new events either
                continue
            yield insert_form_token(event).encode()


def _role(request: Request) -> Role:
    """The role of the user. Requests without a user, to an open `/health`, have the limits of readers."""
    principal: Principal | None = request.scope["relet.principal"]
    return "read" if principal is None else principal.role
