"""Steps, sleeps and waits for signals, done once over all attempts of a job. The store keeps their results."""

from __future__ import annotations

import inspect
from collections import Counter
from collections.abc import Awaitable, Callable, Coroutine
from functools import partial
from typing import Any, TypeVar, cast

from .._core import payload, validate
from .._store.flows import completion as flows
from .._store.flows.completion import Called, Kept
from .._store.store import Store
from .._system import SYSTEM
from .._tasks.codec import check_round_trip, converter, plain_value, result_converter
from .._tasks.task import Task
from .._threads import DaemonThreadPool
from ..errors import InvalidInput, LeaseLost, SignalTimeout, Suspended
from .attempt import Attempt

R = TypeVar("R")

MAX_INPUT = 10_000  # bytes of JSON; longer arguments are not stored

call_in_thread = DaemonThreadPool("relet-handler").call


class Steps:
    """The steps of one job, as one attempt uses them.

    `is_blocked` returns whether the handler has an open transaction: a new step would wait for its locks.
    """

    def __init__(self, store: Store, task: Task[..., Any], attempt: Attempt, is_blocked: Callable[[], bool]) -> None:
        self._store = store
        self._task = task
        self._attempt = attempt
        self._lease = attempt.job.lease
        self._is_blocked = is_blocked
        self._kept: dict[tuple[str, str], Kept] | None = None  # by kind and name
        self._read_at = 0.0  # when those were read, on the monotonic clock
        self._waits: Counter[str] = Counter()  # how often this attempt has waited, by name

    def step(self, name: str, call: partial[R]) -> R:
        """Return the stored result, or call the function and store its result."""
        kept = self._find("step", name)
        if kept is None:
            began = SYSTEM.monotonic()
            kept = self._keep("step", name, self._called(name, call, call(), began))
        return cast(R, self._result(name, kept.result, call.func))

    async def astep(self, name: str, call: partial[Awaitable[R]]) -> R:
        kept = await call_in_thread(self._find, "step", name)
        if kept is None:
            began = SYSTEM.monotonic()
            called = self._called(name, call, await call(), began)
            kept = await call_in_thread(self._keep, "step", name, called)
        return cast(R, self._result(name, kept.result, call.func))

    def sleep(self, name: str, seconds: float) -> None:
        """Return if the time is over, else suspend the attempt until then."""
        kept = self._find("sleep", name) or self._keep("sleep", name, seconds=seconds)
        if (left := self._left(kept)) > 0:
            raise Suspended(left)

    def wait_for(self, name: str, kind: Any, timeout: float | None) -> Any:
        """Return the value of the signal if it was sent; else suspend the attempt until then, or until the timeout."""
        missed = SignalTimeout(self._lease.id, name, timeout or 0.0)
        self._waits[name] += 1
        this = name if self._waits[name] == 1 else f"{name}\x1f{self._waits[name]}"  # a handler may wait again
        if self._find("missed", this):
            raise missed
        value = self._store.run(flows.signal_of, self._lease.id, name)
        if value is not None:
            where = f"signal {name!r} of job {self._lease.id}"
            return converter(kind)(self._task.decode(value, where), where)
        if timeout is None:
            raise Suspended(validate.MAX_SECONDS, name)
        wait = self._find("wait", this) or self._keep("wait", this, seconds=timeout)
        if (left := self._left(wait)) > 0:
            raise Suspended(left, name)
        self._keep("missed", this)  # so that later attempts time out here too, even if the signal is sent meanwhile
        raise missed

    def _find(self, kind: str, name: str) -> Kept | None:
        if self._kept is None:  # the first attempt has none
            self._kept = self._store.run(flows.steps, self._lease.id) if self._attempt.version > 1 else {}
            self._read_at = SYSTEM.monotonic()
        found = self._kept.get((kind, name))
        if found is None and self._is_blocked():
            raise InvalidInput(
                f"{kind} {name!r} of {self._task.name}: steps, sleeps and waits have their own transactions, and would "
                "wait for the one that is open here; use them before attempt.transaction() and attempt.succeed()"
            )
        return found

    def _keep(self, kind: str, name: str, called: Called | None = None, seconds: float | None = None) -> Kept:
        kept = self._store.run(flows.keep, self._lease, kind, name, called or Called(), seconds)
        if kept is None:
            raise LeaseLost(self._lease.id, "keep a step of")
        assert self._kept is not None
        self._kept[kind, name] = kept._replace(left=kept.left + SYSTEM.monotonic() - self._read_at)
        return self._kept[kind, name]

    def _left(self, kept: Kept) -> float:
        """Seconds of a wait that are left now. `kept.left` counts from `_read_at`, when the steps were read."""
        return kept.left - (SYSTEM.monotonic() - self._read_at)

    def _result(self, name: str, text: str | None, function: Callable[..., Any]) -> Any:
        """Convert a stored result. The first attempt gets it from JSON too, so that all attempts see the same value."""
        where = f"{self._label(name)}, job {self._lease.id},"
        return self._converted(name, self._task.decode(text or "null", where), function)

    def _converted(self, name: str, text: str, function: Callable[..., Any]) -> Any:
        return result_converter(function)(text, self._label(name))

    def _called(self, name: str, call: partial[Any], value: object, began: float) -> Called:
        result = self._text(name, value, call.func)
        return Called(result, self._input(name, call), SYSTEM.monotonic() - began)

    def _input(self, name: str, call: partial[Any]) -> str | None:
        """Encode the arguments, by name and without secrets. None if they are not JSON, such as a connection."""
        if not call.args and not call.keywords:
            return None
        try:
            arguments = dict(inspect.signature(call.func).bind(*call.args, **call.keywords).arguments)
        except (TypeError, ValueError):  # a function in C without a signature
            arguments = {"args": call.args, **call.keywords}
        try:
            text = payload.encode(arguments, path=self._label(name), limit=MAX_INPUT, hook=plain_value)
        except InvalidInput:
            return None
        return self._task.encode(self._task.app.redact(text))

    def _text(self, name: str, value: object, function: Callable[..., Any]) -> str:
        """Encode a result. A value that a later attempt could not read is refused."""
        if isinstance(value, Coroutine):
            value.close()
            raise InvalidInput(f"{self._label(name)} is a coroutine function: write `await attempt.astep(...)`")
        text = payload.encode(value, path=self._label(name), limit=self._task.app.payload_limit, hook=plain_value)
        check_round_trip(value, self._converted(name, text, function), self._label(name))
        return self._task.encode(text)

    def _label(self, name: str) -> str:
        return f"step {name!r} of {self._task.name}"
