"""The values that the parts of a gateway share, and how it runs flows."""

from __future__ import annotations

import logging
from collections.abc import Callable, Iterable
from typing import ParamSpec, TypeVar

from msgspec import Struct

from .._core.job import Lease
from .._store.flows import lease as lease_flows
from .._store.query import Flow
from .._store.retry import RetryFor
from .._store.store import Store
from .._system import System
from .._threads import DaemonThreadPool
from .._web.auth import Principal
from .._web.problems import Refusal
from .._worker.reconnect import ReapGuard

P = ParamSpec("P")
R = TypeVar("R")

log = logging.getLogger("relet.gateway")

RETRY_FOR = 2.0  # seconds: then the worker repeats the request, here or at another gateway
REMEMBERED = 100_000  # jobs whose queues are remembered
CLAIM_THREADS = 4
THREADS = 12

_briefly, _once = RetryFor(RETRY_FOR), RetryFor(0.0)


class GatewayContext(Struct, frozen=True, eq=False):
    """`renewing`: the same database, with connections that no other request can take."""

    store: Store
    renewing: Store
    guard: ReapGuard
    system: System
    payload_limit: int
    tasks: frozenset[str]  # of the app, if the gateway has one
    queues: dict[str, str] = {}  # by job: the queues of jobs that were claimed here lately
    claiming: DaemonThreadPool = DaemonThreadPool("relet-claims", CLAIM_THREADS)
    working: DaemonThreadPool = DaemonThreadPool("relet-gateway", THREADS)
    renewals: DaemonThreadPool = DaemonThreadPool("relet-renewals", 2)

    def run(self, flow: Callable[P, Flow[R]], *args: P.args, **kwargs: P.kwargs) -> R:
        return self.store.run_with(_briefly, flow, *args, **kwargs)

    def renew(self, flow: Callable[P, Flow[R]], *args: P.args, **kwargs: P.kwargs) -> R:
        """Run a flow that renews leases. While it fails, this process reaps nothing."""
        try:  # once: the worker repeats it, if it is still there
            result = self.renewing.run_with(_once, flow, *args, **kwargs)
        except Exception:
            self.guard.renewal_failed()
            raise
        self.guard.renewed()
        return result

    def remember(self, jobs: Iterable[tuple[str, str]]) -> None:
        """Keep the queues of jobs, by id."""
        self.queues.update(jobs)
        while len(self.queues) > REMEMBERED:
            self.queues.pop(next(iter(self.queues)), None)

    def check_queues(self, principal: Principal, leases: Iterable[Lease]) -> None:
        """Refuse jobs of queues that the token is not for. Jobs that are not stored have nothing to protect."""
        if principal.queues is None:
            return
        ids = [one.id for one in leases]
        unknown = [id for id in ids if id not in self.queues]
        if unknown:
            self.remember(self.run(lease_flows.queues_of, unknown).items())
        check_scope(principal, {self.queues[id] for id in ids if id in self.queues})


def check_scope(principal: Principal, queues: Iterable[str]) -> None:
    """Refuse queues that the token is not for."""
    if principal.queues is None:
        return
    foreign = sorted(set(queues) - principal.queues)
    if foreign:
        own = ", ".join(sorted(principal.queues))
        raise Refusal("forbidden", f"The token of {principal.name} is for queues {own}, not for {', '.join(foreign)}.")


def stored_name(principal: Principal, worker: str) -> str:
    """The name of a worker in the store. It contains that of the token, so that no other token can use it."""
    if not worker.isprintable():
        raise Refusal("invalid-input", "body.worker: must be printable")
    return f"{worker}@{principal.name}"
