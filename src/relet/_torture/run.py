"""A whole run: set up a store, start the processes, inject the faults of a plan, let everything end, and check."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
import time
from collections import Counter
from collections.abc import Callable, Iterator
from contextlib import ExitStack, closing, contextmanager
from pathlib import Path

import msgspec
from msgspec import Struct

from ..app import App
from .check import Violation, check
from .faults import Injector, Restart, rates
from .history import History
from .load import Loaded, load
from .plan import Fault, make_plan
from .proxy import Proxies
from .record import connected, install
from .settings import VARIABLE, Settings
from .workers import Workers

PRODUCERS = 2
WORKERS = 4
STARTED_WITHIN = 120.0  # seconds


class Report(Struct, frozen=True):
    """The result of a run. `faults`: how many struck, by kind; `missed`: how many could not be injected. `lost`:
    attempts whose worker was lost. `healed_in`: seconds until all jobs had ended, after the last fault."""

    folder: str
    seed: int
    seconds: float
    jobs: int
    attempts: int
    lost: int
    faults: dict[str, int]
    missed: int
    states: dict[str, int]
    healed_in: float
    violations: list[Violation]


def torture(
    settings: Settings,
    plan: list[Fault],
    *,
    restart: Restart | None = None,
    progress: Callable[[str], object] = lambda text: None,
) -> Report:
    """Run the plan, and check what happened. The store and the folder stay as they are."""
    history = History(settings.histories, "faults")
    Path(settings.folder, "plan.json").write_bytes(msgspec.json.format(msgspec.json.encode(plan)))
    app = App(settings.direct, schema=settings.schema)
    with closing(app), _proxies(settings) as proxies:
        app.client.migrate()
        install(settings)
        offset = _clock_offset(settings)
        workers = Workers(settings, WORKERS, proxies, history)
        injector = Injector(settings, workers, proxies, history, restart)
        with ExitStack() as stack:
            workers.start()
            stack.callback(workers.stop, 20.0)
            _wait_for_workers(app)
            programs = [stack.enter_context(_program(settings, name, str(n))) for name, n in _programs()]
            _inject(plan, injector, progress)
            injector.wait(4 * settings.lease + 120.0)
            for program in programs:
                _end(program)
            began = time.monotonic()
            _heal(app, settings, progress)
            healed_in = time.monotonic() - began
        loaded = load(settings, offset)
    progress("checking")
    return _report(settings, loaded, check(loaded), healed_in)


@contextmanager
def _proxies(settings: Settings) -> Iterator[Proxies | None]:
    if settings.is_sqlite:
        yield None
    else:
        with closing(Proxies(settings.direct)) as proxies:
            yield proxies


def _programs() -> list[tuple[str, int]]:
    return [*(("producer", number) for number in range(PRODUCERS)), ("operator", 0)]


@contextmanager
def _program(settings: Settings, name: str, number: str) -> Iterator[subprocess.Popen[bytes]]:
    """Start a producer or operator. At the end of the block it is killed, if it still runs."""
    with Path(settings.folder, f"{name}{number}.log").open("ab") as log:
        process = subprocess.Popen(  # noqa: S603
            [sys.executable, "-m", f"relet._torture.{name}", number], stdout=log, stderr=log,
            stdin=subprocess.DEVNULL, env={**os.environ, VARIABLE: str(settings.save("settings"))},
        )  # fmt: skip
    try:
        yield process
    finally:
        process.kill()
        process.wait()


def _end(process: subprocess.Popen[bytes]) -> None:
    process.send_signal(signal.SIGTERM)
    process.wait(60.0)


def _clock_offset(settings: Settings) -> float:
    """The clock of the database less that of this machine."""
    statement = "select (julianday('now') - 2440587.5) * 86400.0" if settings.is_sqlite else (
        "select extract(epoch from clock_timestamp())::float8")  # fmt: skip
    with connected(settings) as connection:
        before = time.time()
        (there,) = connection.execute(statement).fetchone()
        return float(there) - (before + time.time()) / 2


def _wait_for_workers(app: App) -> None:
    give_up = time.monotonic() + STARTED_WITHIN
    while len(app.client.workers()) < WORKERS or not app.client.schedules.all():
        if time.monotonic() > give_up:
            raise RuntimeError(f"{WORKERS} workers have not started within {STARTED_WITHIN:.0f} s; see their logs")
        time.sleep(0.05)


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
    """Wait until every job has ended: what waits for an operator is signalled and resumed."""
    progress("faults are over; waiting for the jobs to end")
    client, give_up = app.client.acting_as("operator"), time.monotonic() + 60.0 + 30 * settings.lease
    client.schedules.pause("tick")
    while time.monotonic() < give_up:
        for job in client.jobs(task="signalled", state=["pending", "paused"], limit=1000).jobs:
            client.signal(job, "go", 1)
        client.bulk("resume", state="paused")
        if not client.count(state=["pending", "queued", "running", "paused"]):
            return
        time.sleep(0.5)


def _report(settings: Settings, loaded: Loaded, violations: list[Violation], healed_in: float) -> Report:
    states: dict[str, str] = {}
    for record in loaded.records:
        if record.after and record.table != "attempts":
            states[record.job] = record.after["state"]
    outcomes = Counter(record.after["outcome"] for record in loaded.records if record.table == "attempts")
    report = Report(
        folder=settings.folder,
        seed=settings.seed,
        seconds=settings.seconds,
        jobs=len(states),
        attempts=len(loaded.events["start"]),
        lost=outcomes["lost"],
        faults=dict(Counter(event.fields["kind"] for event in loaded.events["fault"])),
        missed=len(loaded.events["fault missed"]),
        states=dict(Counter(states.values())),
        healed_in=round(healed_in, 1),
        violations=violations,
    )
    Path(settings.folder, "report.json").write_bytes(msgspec.json.format(msgspec.json.encode(report)))
    if violations:
        lines = (msgspec.json.encode(record) for record in loaded.records)
        Path(settings.folder, "records.jsonl").write_bytes(b"\n".join(lines))
    return report


def planned(settings: Settings, restart: Restart | None = None) -> list[Fault]:
    """The plan of a seed."""
    return make_plan(settings.seed, settings.seconds, rates(settings, restart), WORKERS)
