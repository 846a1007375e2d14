"""A whole run: set up a store, start the processes, inject the faults of a plan, let everything end, and check."""

from __future__ import annotations

import math
import socket
import time
from collections import Counter
from collections.abc import Callable, Iterator, Mapping
from contextlib import ExitStack, closing, contextmanager
from itertools import chain
from pathlib import Path
from urllib.parse import urlsplit

import msgspec
from msgspec import Struct, structs

from .._client.client import Client
from ..app import App
from .check import check
from .facts import GATEWAYS, TENANT, WAITS_FOR_SIGNALS
from .faults import Hook, Injector, rates
from .history import History
from .jobs import CLOCK, Jobs, Violation
from .load import Loaded, load
from .plan import Fault, make_plan, minimum
from .processes import Processes, Program, gateway_programs, worker_program
from .proxy import Proxies
from .record import connected, install
from .recovery import percentiles
from .settings import Settings, can_serve

PRODUCERS = 2
WORKERS = 4  # beside one for the tenant
STARTED_WITHIN = 120.0  # seconds
CLOCK_SAMPLES = 20
STOPPED_WITHIN = 30.0  # seconds: longer than a worker may take, so that the checker sees how long it took


class Report(Struct, frozen=True):
    """The result of a run. `faults`: how many struck, by kind; `missed`: how many could not be injected. `lost`:
    attempts whose worker was lost. `rescued_in`: seconds from the expiry of their leases until they were reaped, the
    median and the 99th percentile. `healed_in`: seconds until all jobs had ended, after the last fault."""

    folder: str
    seed: int
    seconds: float
    jobs: int
    attempts: int
    lost: int
    rescued_in: tuple[float, float]
    faults: dict[str, int]
    missed: int
    states: dict[str, int]
    healed_in: float
    violations: list[Violation]


def torture(
    settings: Settings,
    plan: list[Fault],
    *,
    hooks: Mapping[str, Hook] | None = None,
    progress: Callable[[str], object] = lambda text: None,
) -> Report:
    """Run the plan, and check what happened. The store and the folder stay as they are.

    `hooks`: functions that inject those kinds of faults that only the caller can, such as a restart of the server.
    """
    history = History(settings.histories, "faults")
    Path(settings.folder, "plan.json").write_bytes(msgspec.json.format(msgspec.json.encode(plan)))
    app = App(settings.direct, schema=settings.schema)
    with closing(app), _proxies(settings) as proxies:
        for client, store in ((app.client, settings), (app.client.tenant(TENANT), settings.of_tenant())):
            client.migrate()
            install(store)
        offset = _clock_offset(settings)
        settings = structs.replace(settings, web=_web_address(), gateways=_gateways())
        gateways = Processes(settings, gateway_programs(settings.gateways), proxies, history)
        workers = Processes(settings, _workers(settings), proxies, history)
        clients = Processes(settings, _clients(settings), proxies, history)
        injector = Injector(settings, workers, clients, gateways, proxies, history, hooks or {})
        with ExitStack() as stack:
            stack.callback(gateways.stop, STOPPED_WITHIN)
            gateways.start()
            stack.callback(workers.stop, STOPPED_WITHIN)
            workers.start()
            _wait_for_workers(app)
            stack.callback(clients.stop, STOPPED_WITHIN)
            clients.start()
            _inject(plan, injector, progress)
            injector.wait(4 * settings.lease + 120.0)
            clients.stop(STOPPED_WITHIN)
            began = time.monotonic()
            _heal(app, settings, progress)
            healed_in = time.monotonic() - began
        stores = [Jobs(loaded) for loaded in load(settings, offset)]
    progress("checking")
    violations = [one for store in stores for one in check(store)]
    return _report(settings, stores, [*violations, *_shortfalls(plan, stores[0].loaded)], healed_in)


@contextmanager
def _proxies(settings: Settings) -> Iterator[Proxies | None]:
    if settings.is_sqlite:
        yield None
    else:
        with closing(Proxies(settings.direct)) as proxies:
            yield proxies


def _gateways() -> tuple[str, ...]:
    """Addresses for gateways, if they can run here."""
    return tuple(_address() for _ in range(GATEWAYS)) if can_serve() else ()


def _web_address() -> str:
    """An address for the HTTP API, if it can run here."""
    return _address() if can_serve() else ""


def _address() -> str:
    with socket.create_server(("127.0.0.1", 0)) as server:
        return f"http://127.0.0.1:{server.getsockname()[1]}"


def _workers(settings: Settings) -> list[Program]:
    programs = [worker_program(settings, number) for number in range(WORKERS)]
    return [*programs, worker_program(settings, WORKERS, TENANT)]


def _clients(settings: Settings) -> list[Program]:
    programs = [Program(f"producer{number}", ("relet._torture.producer", str(number))) for number in range(PRODUCERS)]
    programs.append(Program("operator", ("relet._torture.operator",)))
    if settings.web:
        port = str(urlsplit(settings.web).port)
        programs.append(Program("web", ("relet", "web", "relet._torture.shop:app", "--port", port)))
    return programs


def _clock_offset(settings: Settings) -> float:
    """The clock of the database less that of this machine, by the quickest of several answers. One that was delayed
    would be wrong by half of its delay: on a loaded machine, by more than the checker tolerates."""
    statement = "select (julianday('now') - 2440587.5) * 86400.0" if settings.is_sqlite else (
        "select extract(epoch from clock_timestamp())::float8")  # fmt: skip
    samples: list[tuple[float, float]] = []
    with connected(settings) as connection:
        while len(samples) < CLOCK_SAMPLES or (min(samples)[0] > CLOCK and len(samples) < 10 * CLOCK_SAMPLES):
            before = time.time()
            (there,) = connection.execute(statement).fetchone()
            after = time.time()
            samples.append((after - before, float(there) - (before + after) / 2))
    return min(samples)[1]


def _wait_for_workers(app: App) -> None:
    give_up = time.monotonic() + STARTED_WITHIN
    clients = {app.client: WORKERS, app.client.tenant(TENANT): 1}
    while any(_workers_of(client) < number or not client.schedules.all() for client, number in clients.items()):
        if time.monotonic() > give_up:
            raise RuntimeError(f"{WORKERS} workers have not started within {STARTED_WITHIN:.0f} s; see their logs")
        time.sleep(0.05)


def _workers_of(client: Client) -> int:
    """How many workers run. A gateway has no slots."""
    return sum(one.slots > 0 for one in client.workers())


def _inject(plan: list[Fault], injector: Injector, progress: Callable[[str], object]) -> None:
    began, reported = time.monotonic(), 0.0
    for number, fault in enumerate(plan):
        while (wait := fault.at - (time.monotonic() - began)) > 0:
            time.sleep(min(wait, 1.0))
        injector.inject(fault)
        if time.monotonic() - reported > 5.0:
            reported = time.monotonic()
            progress(f"{number + 1} of {len(plan)} faults")


def _heal(app: App, settings: Settings, progress: Callable[[str], object]) -> None:
    """Wait until every job has ended, as long as they become fewer. Signals and resumes what waits for an operator."""
    progress("faults are over; waiting for the jobs to end")
    clients = [one.acting_as("operator") for one in (app.client, app.client.tenant(TENANT))]
    within, fewest = 60.0 + 30 * settings.lease, math.inf
    give_up = time.monotonic() + within
    for client in clients:
        client.schedules.pause("tick")
        for queue in client.queues():
            client.resume_queue(queue.queue)
    while time.monotonic() < give_up:
        for client in clients:
            for job in client.jobs(task=WAITS_FOR_SIGNALS, state=["pending", "paused"], limit=1000).jobs:
                client.signal(job, "go", 1)
            client.bulk("resume", state="paused")
        left = sum(client.count(state=["pending", "queued", "running", "paused"]) for client in clients)
        if not left:
            return
        if left < fewest:
            fewest, give_up = left, time.monotonic() + within
        time.sleep(0.5)


def _shortfalls(plan: list[Fault], loaded: Loaded) -> Iterator[Violation]:
    """Kinds of which too few faults struck: such a run proves less than it says."""
    struck = Counter(event.fields["kind"] for event in loaded.events["fault"])
    for kind in sorted({fault.kind for fault in plan}):
        if struck[kind] < minimum(kind, plan):
            yield Violation("faults", "", f"{struck[kind]} of kind {kind} struck, of at least {minimum(kind, plan)}")


def _report(settings: Settings, stores: list[Jobs], violations: list[Violation], healed_in: float) -> Report:
    states: dict[str, str] = {}
    outcomes: Counter[str] = Counter()
    for record in chain.from_iterable(store.loaded.records for store in stores):
        if record.table == "attempts":
            outcomes[record.after["outcome"]] += 1
        elif record.after:
            states[record.job] = record.after["state"]
    events = stores[0].loaded.events
    attempts = [len(store.loaded.events["start"]) for store in stores]
    report = Report(
        folder=settings.folder,
        seed=settings.seed,
        seconds=settings.seconds,
        jobs=len(states),
        attempts=sum(attempts),
        lost=outcomes["lost"],
        rescued_in=percentiles(stores[0].rescues),
        faults=dict(Counter(event.fields["kind"] for event in events["fault"])),
        missed=len(events["fault missed"]),
        states=dict(Counter(states.values())),
        healed_in=round(healed_in, 1),
        violations=violations,
    )
    Path(settings.folder, "report.json").write_bytes(msgspec.json.format(msgspec.json.encode(report)))
    if violations:
        records = chain.from_iterable(store.loaded.records for store in stores)
        lines = map(msgspec.json.encode, records)
        Path(settings.folder, "records.jsonl").write_bytes(b"\n".join(lines))
    return report


def planned(settings: Settings, hooks: Mapping[str, Hook] | None = None) -> list[Fault]:
    """The plan of a seed."""
    return make_plan(settings.seed, settings.seconds, rates(settings, hooks or {}), WORKERS + 1)
