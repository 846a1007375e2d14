"""The flows beside the same SQL in a bare loop: what does it cost that a verb is a generator and rows become nouns?

The bare loop runs the very statements of the flows, in transactions of the same shape, on a connection set up in the
same way. It builds its parameters from plain dicts as any loop would, and takes the rows as they come. Both use the
same tables in turn, so that whatever else the machine does hits both.
"""

from __future__ import annotations

import cProfile
import os
import pstats
import random
import statistics
import time
import uuid
from collections import defaultdict
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from typing import Any, Protocol

import msgspec

from bench.places import Place
from leasehold.core.ids import make_id
from leasehold.core.job import Claimed, Draft, Lease, Succeeded
from leasehold.store.flows import enqueue, lease
from leasehold.store.flows.lease import Scope
from leasehold.store.query import Query, as_json

VERBS = ("enqueue", "claim", "settle")
PAYLOAD = '{"args":["acct-7",500],"kwargs":{"note":"thank you"}}'
LEASE = 30.0

Times = dict[tuple[str, str], list[float]]  # by verb and way: seconds of each batch


def drafts(number: int) -> list[Draft[Any]]:
    return [Draft(make_id(time.time(), os.urandom(10)), "charge", PAYLOAD) for _ in range(number)]


class Way(Protocol):
    """A way to run the verbs."""

    name: str

    def prepare(self, given: list[Draft[Any]]) -> Any:
        """Drafts in the form that `enqueue` takes."""

    def enqueue(self, given: Any) -> None: ...

    def claim(self, want: int) -> Any: ...

    def settle(self, jobs: Any) -> None: ...


class Flows:
    """A round of verbs through `store.run`."""

    name = "flows"

    def __init__(self, place: Place) -> None:
        self._run = place.store.run

    def prepare(self, given: list[Draft[Any]]) -> list[Draft[Any]]:
        return given

    def enqueue(self, given: list[Draft[Any]]) -> None:
        self._run(enqueue.enqueue, given)

    def claim(self, want: int) -> list[Claimed]:
        token = str(uuid.uuid4())
        scopes = [Scope("default", want)]
        return self._run(lease.claim, "w", token, scopes, ["charge"], want=want, lease=LEASE, random=random.random).jobs

    def settle(self, jobs: list[Claimed]) -> None:
        self._run(lease.settle, [(job.lease, Succeeded("1")) for job in jobs], random.random)


class Bare:
    """The same round in a plain loop. The statements and the shape of their parameters come from the flows."""

    name = "bare"

    def __init__(self, place: Place, task: str = "charge") -> None:
        self._bare = place.bare
        scopes, chance = [Scope("default", 1)], random.random
        self._claim = first(lease.claim("w", "", scopes, [task], want=1, lease=LEASE, random=chance))
        self._settle = first(lease.settle([(Lease("", ""), Succeeded("1"))], random.random))
        (self._settle_row,) = msgspec.json.decode(self._settle.params["batch"])

    def prepare(self, given: list[Draft[Any]]) -> list[dict[str, Any]]:
        """Plain dicts, which a loop would have in its hands."""
        found: list[dict[str, Any]] = msgspec.json.decode(first(enqueue.enqueue(given)).params["batch"])
        return found

    def enqueue(self, given: list[dict[str, Any]]) -> None:
        self._bare("enqueue", {"batch": as_json(given), "now": None})

    def claim(self, want: int) -> list[tuple[str, str]]:
        token = str(uuid.uuid4())
        queues = as_json([Scope("default", want).row(want)])
        answer = self._bare("claim", {**self._claim.params, "token": token, "queues": queues, "want": want})
        return [(row[2], token) for row in answer if row[2] is not None]

    def settle(self, jobs: list[tuple[str, str]]) -> None:
        batch = [{**self._settle_row, "id": id, "token": token} for id, token in jobs]
        self._bare("succeed", {**self._settle.params, "batch": as_json(batch)})


def first(flow: Any) -> Query:
    """The first statement that a flow would run."""
    for step in flow:
        if isinstance(step, Query):
            flow.close()
            return step
    raise LookupError("a flow without a statement")


def rounds(batch: int) -> int:
    """So many batches of each way are one measurement."""
    return max(10, min(100, 2000 // batch))


def measure(ways: Sequence[Way], batch: int, number: int) -> Times:
    """The seconds that each batch took. The ways take turns, batch by batch, so that a busy machine hits all alike."""
    times: Times = defaultdict(list)
    turns = [ways[(turn + place) % len(ways)] for turn in range(number) for place in range(len(ways))]
    given = [way.prepare(drafts(batch)) for way in turns]
    for way, one in zip(turns, given, strict=True):
        with timed(times["enqueue", way.name]):
            way.enqueue(one)
    claimed = []
    for way in turns:
        with timed(times["claim", way.name]):
            claimed.append(way.claim(batch))
    for way, one in zip(turns, claimed, strict=True):
        with timed(times["settle", way.name]):
            way.settle(one)
    if {len(one) for one in claimed} != {batch}:
        raise RuntimeError("a claim brought fewer jobs than there are")
    return times


@contextmanager
def timed(into: list[float]) -> Iterator[None]:
    begin = time.perf_counter()
    yield
    into.append(time.perf_counter() - begin)


def run(place: Place, batches: list[int], repeat: int) -> None:
    """The table of one store."""
    ways: list[Way] = [Flows(place), Bare(place)]
    measure(ways, 10, 20)  # connections, plans, caches
    print("jobs/s, by the median batch            flows      bare   flows/bare (lowest and highest of the repetitions)")
    for batch in batches:
        repetitions = []
        for _ in range(repeat):
            repetitions.append(measure(ways, batch, rounds(batch)))
            place.tidy()
        for verb in VERBS:
            show(place.name, verb, batch, repetitions)


def show(name: str, verb: str, batch: int, repetitions: list[Times]) -> None:
    medians = {way: [statistics.median(times[verb, way]) for times in repetitions] for way in ("flows", "bare")}
    ratios = sorted(bare / flows for flows, bare in zip(medians["flows"], medians["bare"], strict=True))
    flows, bare = (batch / statistics.median(medians[way]) for way in ("flows", "bare"))
    verb = "enqueue_many" if verb == "enqueue" and batch > 1 else verb
    ratio = f"{statistics.median(ratios):.2f}  ({ratios[0]:.2f}, {ratios[-1]:.2f})"
    print(f"{name:9} {verb:13} x {batch:<5} {flows:>12,.0f}{bare:>10,.0f}   {ratio}", flush=True)


def profile(place: Place, batch: int) -> None:
    """Where the flows spend their time, in Python."""
    flows = Flows(place)
    measure([flows], 10, 20)
    profiler = cProfile.Profile()
    profiler.runcall(measure, [flows], batch, rounds(batch))
    pstats.Stats(profiler).strip_dirs().sort_stats("tottime").print_stats(25)
