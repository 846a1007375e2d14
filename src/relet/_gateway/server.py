"""The gateway over HTTP: authentication, bodies, answers. A plain ASGI application, because every job passes it."""

from __future__ import annotations

import asyncio
import time
import uuid
from collections.abc import Awaitable, Callable, Iterable, Mapping
from contextlib import suppress
from typing import Any

import msgspec

from .._remote.wire import MAX_BODY, PATH, ClaimIn, InterruptIn, RequestsIn
from .._store.store import Store
from .._system import SYSTEM
from .._web.auth import Principal, TokenAuth
from .._web.problems import Fault, Refusal, problem, refusal_of
from .._web.security import FAILURES_WITHIN, WRONG_TOKEN_DELAY, Failures, network_of
from .._worker.reconnect import ReapGuard
from ..app import App
from ..errors import ReletError, StoreError
from .claims import Claims
from .context import GatewayContext, check_scope, log, stored_name
from .requests import Requests
from .service import VERBS, Service, is_requeued
from .upkeep import Upkeep

Scope = Mapping[str, Any]
Receive = Callable[[], Awaitable[Any]]
Send = Callable[[Any], Awaitable[None]]

BODY_WITHIN = 30.0  # seconds
CONNECTIONS = 10  # to the database, beside those for renewals
#: Verbs that are not for a client that has closed its connection. If this process was stopped for a while, what a
#: worker that is dead by now had sent must not extend its leases.
WATCHED = frozenset({"claim", "renew", "requests"})
READS = 3  # turns of the event loop until the end of a connection is known, if it is in the buffer of the system

_decoders = {verb: msgspec.json.Decoder(kind) for verb, (kind, _) in VERBS.items()}
_decoders |= {
    "claim": msgspec.json.Decoder(ClaimIn),
    "requests": msgspec.json.Decoder(RequestsIn),
    "interrupt": msgspec.json.Decoder(InterruptIn),
}
_encoder = msgspec.json.Encoder()


class Gateway:
    """An ASGI application that serves the workers of an app, or of one of its tenants."""

    def __init__(self, app: App, auth: TokenAuth, tenant: str | None = None) -> None:
        store = app._store(tenant)
        own: Store = store.with_own_connections(CONNECTIONS)
        renewing = store.with_own_connections(2)
        guard = ReapGuard(SYSTEM)
        self._stores = [one for one in (own, renewing) if one is not store]
        self._auth, self._failures = auth, Failures(time.monotonic)
        self.context = GatewayContext(own, renewing, guard, SYSTEM, app.payload_limit, frozenset(app.tasks))
        self.upkeep = Upkeep(app, tenant, own, guard)
        self.claims, self._requests = Claims(self.context, self.upkeep.listening), Requests(self.context)
        self._service = Service(self.context, self.upkeep.add_tasks)

    def prepare(self) -> None:
        """Check that the store can be used. Raises StoreError if it cannot."""
        self.context.store.reach()
        self.upkeep.prepare()

    def start(self) -> None:
        """Called on the event loop, once the port is open: workers must be able to renew before anything is reaped."""
        self.claims.start()
        self._requests.start()
        self.upkeep.on_queued(self.claims.poll)
        self.upkeep.start()

    def stop(self) -> None:
        """Answer the workers that wait."""
        self.claims.stop()
        self._requests.stop()

    def close(self) -> None:
        self.upkeep.stop()
        for store in self._stores:
            store.close()

    # HTTP

    async def __call__(self, scope: Any, receive: Receive, send: Send) -> None:
        if scope["type"] == "lifespan":
            await _lifespan(receive, send)
            return
        if scope["type"] != "http":
            return
        gone: asyncio.Future[None] = asyncio.get_running_loop().create_future()
        try:
            status, body, headers = 200, await self._answer(scope, receive, gone), _JSON
        except asyncio.CancelledError:
            if not gone.done():
                raise
            return  # the client has closed the connection
        except Exception as error:
            status, body, headers = self._refused(scope, error)
        finally:
            gone.cancel()
        length = (b"content-length", str(len(body)).encode())
        await send({"type": "http.response.start", "status": status, "headers": [*headers, length]})
        await send({"type": "http.response.body", "body": body})

    async def _answer(self, scope: Any, receive: Receive, gone: asyncio.Future[None]) -> bytes:
        path = scope["path"]
        headers = dict(scope["headers"])
        if path == "/health" and scope["method"] == "GET":
            return b'{"status":"ok"}'
        principal = await self._principal(scope, headers)
        scope["relet.principal"] = principal  # from here on, the connection counts as authenticated
        root = str(scope.get("root_path", "")).rstrip("/")
        verb = path.removeprefix(root).removeprefix(PATH)
        if verb not in _decoders:
            raise Refusal(
                "not-found", f"There is nothing at {path[:200]!r}. The verbs are POST {PATH}{{{','.join(_decoders)}}}."
            )
        if scope["method"] != "POST":
            raise Refusal("method-not-allowed", "Use POST.", headers={"allow": "POST"})
        asked = _decoded(verb, await _body(headers, receive))
        if verb == "interrupt":
            worker = stored_name(principal, asked.worker)
            self.claims.interrupt(worker)
            self._requests.interrupt(worker)
            return b"{}"
        if verb not in WATCHED:
            return await self._call(verb, principal, asked)
        watch = asyncio.create_task(_watch(receive, gone))
        try:
            for _ in range(READS):
                await asyncio.sleep(0)
            if gone.done():
                raise asyncio.CancelledError
            if verb == "renew":
                return await self._call(verb, principal, asked)
            if verb == "claim":
                return await self._claim(principal, asked, gone)
            return _encoder.encode(await self._requests.wait(asked, stored_name(principal, asked.worker), gone))
        finally:
            watch.cancel()

    async def _call(self, verb: str, principal: Principal, asked: Any) -> bytes:
        pool = self.context.renewals if verb == "renew" else self.context.working
        method = VERBS[verb][1]

        def work() -> tuple[bytes, bool]:
            answer = method(self._service, principal, asked)
            return _encoder.encode(answer), verb == "settle" and is_requeued(answer)

        body, requeued = await pool.call(work)
        if verb == "settle":
            self.claims.settled(requeued=requeued)
        return body

    async def _claim(self, principal: Principal, asked: ClaimIn, gone: asyncio.Future[None]) -> bytes:
        queues = asked.queues
        if queues is None and principal.queues is not None:
            queues = sorted(principal.queues)
        if queues is not None:
            check_scope(principal, queues)
            if not queues:
                raise Refusal("invalid-input", "body.queues: names at least one queue, or leave it out for all")
        key = None if queues is None else tuple(sorted(set(queues)))
        return await self.claims.claim(asked, stored_name(principal, asked.worker), key, gone)

    async def _principal(self, scope: Any, headers: Mapping[bytes, bytes]) -> Principal:
        """The owner of the token. As in the dashboard, answers to wrong tokens are slowed down, and no others."""
        kind, _, token = headers.get(b"authorization", b"").decode("latin-1").partition(" ")
        principal = self._auth.by_token(token.strip()) if kind.lower() == "bearer" else None
        if principal is not None:
            return principal
        if token:
            address = network_of(str((scope.get("client") or ("",))[0]))
            if self._failures.too_many(address):
                await asyncio.sleep(WRONG_TOKEN_DELAY)
                raise Refusal(
                    "too-many-requests", "Invalid token, and too many wrong tokens from this address.",
                    headers={"retry-after": f"{FAILURES_WITHIN:.0f}"},
                )  # fmt: skip
            self._failures.add(address, token)
        raise Refusal(
            "unauthenticated", "Send a token: Authorization: Bearer <token>.",
            headers={"www-authenticate": 'Bearer realm="relet"', **_CLOSE},
        )  # fmt: skip

    def _refused(self, scope: Any, error: Exception) -> tuple[int, bytes, list[tuple[bytes, bytes]]]:
        """A problem document. The log has the details of errors that are not the client's."""
        refusal = error if isinstance(error, Refusal) else None
        if refusal is None and isinstance(error, ReletError):
            refusal = refusal_of(error)
            if isinstance(error, StoreError):
                log.warning("%s: %s: %s", scope["path"][:200], type(error).__name__, error)
        if refusal is None:
            id = uuid.uuid4().hex
            log.error("%s failed (%s)", scope["path"][:200], id, exc_info=error)
            detail = "Internal error, not caused by your request. The log of the gateway has the details under this id."
            reply = problem("internal", detail, instance=scope["path"][:500], id=id)
        else:
            reply = problem(
                refusal.kind, refusal.detail, instance=scope["path"][:500], faults=refusal.faults,
                headers=refusal.headers,
            )  # fmt: skip
        headers = [(name.lower().encode(), value.encode()) for name, value in reply.headers.items()]
        return reply.status, reply.body, [(b"content-type", reply.media_type.encode()), *headers]


_CLOSE = {"connection": "close"}  # the rest of the request is not read
_JSON = [(b"content-type", b"application/json"), (b"cache-control", b"no-store")]


def _decoded(verb: str, body: bytes) -> Any:
    try:
        return _decoders[verb].decode(body)
    except msgspec.ValidationError as error:
        raise Refusal("invalid-input", f"body: {error}", [Fault("body", str(error))]) from None
    except (msgspec.DecodeError, UnicodeDecodeError, RecursionError) as error:
        raise Refusal("malformed", f"The body is not JSON: {error}.") from None


async def _body(headers: Mapping[bytes, bytes], receive: Receive) -> bytes:
    """The body, of limited size and within a limited time."""
    length = headers.get(b"content-length", b"0")
    if not length.isdigit() or int(length) > MAX_BODY:
        raise _too_large()
    parts: list[bytes] = []
    size = 0
    try:
        async with asyncio.timeout(BODY_WITHIN):
            while True:
                message = await receive()
                if message["type"] == "http.disconnect":
                    raise Refusal("malformed", "The client disconnected before the request body was complete.")
                parts.append(message.get("body", b""))
                size += len(parts[-1])
                if size > MAX_BODY:
                    raise _too_large()
                if not message.get("more_body", False):
                    return parts[0] if len(parts) == 1 else b"".join(parts)
    except TimeoutError:
        detail = f"The request body did not arrive within {BODY_WITHIN:g} s."
        raise Refusal("malformed", detail, headers=_CLOSE) from None


def _too_large() -> Refusal:
    return Refusal("too-large", f"The request body is larger than {MAX_BODY} bytes. Send less at once.", headers=_CLOSE)


async def _watch(receive: Receive, gone: asyncio.Future[None]) -> None:
    """Notice that the client closes the connection."""
    with suppress(asyncio.CancelledError):
        while (await receive())["type"] != "http.disconnect":
            pass
        if not gone.done():
            gone.set_result(None)


async def _lifespan(receive: Receive, send: Send) -> None:
    while True:
        message = await receive()
        await send({"type": f"{message['type']}.complete"})
        if message["type"] == "lifespan.shutdown":
            return


def workers_auth(tokens: Mapping[str, str], queues: Mapping[str, Iterable[str]]) -> TokenAuth:
    """Tokens of workers. Their names are parts of the names of workers, so they contain no @."""
    for name in tokens:
        if "@" in name:
            raise ReletError(f"The name of a worker's token must not contain @: {name}")
    return TokenAuth(work=tokens, queues=queues)
