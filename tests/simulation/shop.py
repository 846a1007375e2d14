"""The tasks of a simulation. Their handlers sleep in virtual time."""

from __future__ import annotations

import random
from collections.abc import Callable, Iterator
from functools import cache
from typing import Any

from relet import App, Attempt, Backoff, Draft, Fail, Retry, Snooze
from relet._torture.facts import (
    LONGEST_BACKOFF,
    MAX_RUNNING,
    MAX_RUNNING_OF_GROUP,
    MAX_RUNNING_PER_GROUP,
    RATES,
    REPLACED,
    WINDOW,
    WINDOWED,
)
from relet.events import Ended, Failed, Retried, Succeeded
from relet.types import FailedJob
from tests.simulation.events import Events
from tests.simulation.kernel import Kernel

LEASE = 2.0
SOON = Backoff(base=0.05, max=LONGEST_BACKOFF)


class World:
    """The simulation in which handlers run."""

    kernel: Kernel
    events: Events

    def pause(self, seconds: float) -> None:
        self.kernel.sleep(self.kernel.random.random() * seconds)


def make_app(kernel: Kernel, events: Events, *, announces: bool, limits: bool, partly: bool) -> App:
    """`limits`: some queues have limits; `partly`: in one of them, some groups have none."""
    app, world = _app(announces, limits, partly)
    world.kernel, world.events = kernel, events
    return app


@cache
def _app(announces: bool, limits: bool, partly: bool) -> tuple[App, World]:
    """The same tasks, by name, as the checker of torture knows."""
    world = World()
    pause = world.pause
    app = App("sqlite:///:memory:", defaults={"backoff": SOON, "max_attempts": 5})

    @app.middleware
    def record(attempt: Attempt) -> Iterator[None]:
        world.events.write("start", **about(attempt))
        try:
            yield
        except BaseException as error:
            world.events.write("end", error=type(error).__name__, **about(attempt))
            raise
        world.events.write("end", error=None, **about(attempt))

    def about(attempt: Attempt) -> dict[str, Any]:
        return {
            "job": attempt.job.id, "version": attempt.version, "task": attempt.job.task, "worker": attempt.worker,
        }  # fmt: skip

    def announce(event: Ended) -> None:
        world.events.write("announced", job=event.job_id, version=event.version, outcome=type(event).__name__.lower())

    if announces:  # without listeners, a worker stores successes in another way
        for kind in (Succeeded, Retried, Failed):
            app.on(kind)(announce)

    @app.task
    def quick(attempt: Attempt) -> int:
        pause(0.02)
        return attempt.version

    @app.task
    def medium(attempt: Attempt) -> int:
        pause(0.6)
        return attempt.version

    @app.task
    def long(attempt: Attempt) -> int:
        for _ in range(int(world.kernel.random.random() * 9)):
            pause(0.5 * LEASE)
            if attempt.deadline > world.kernel.now:
                world.events.write("check", **about(attempt))
        return attempt.version

    @app.task
    def flaky(attempt: Attempt) -> int:
        pause(0.5)
        if attempt.job.attempt <= 2:
            raise Retry("not yet", delay=0.1)
        return attempt.version

    @app.task
    def snoozing(attempt: Attempt) -> int:
        if attempt.version == 1:
            raise Snooze(0.3)
        return attempt.version

    @app.task
    def apologise(attempt: Attempt, failed: FailedJob) -> int:
        return attempt.version

    @app.task(max_attempts=2, follow_up=apologise)
    def hopeless(attempt: Attempt) -> int:
        pause(0.05)
        raise Fail("never")

    @app.task
    def pay(attempt: Attempt) -> int:
        pause(0.1)
        with attempt.transaction() as transaction:
            transaction.connection.execute(
                "insert into relet_torture_ledger values (?, ?)", (attempt.job.id, attempt.version)
            )
            transaction.succeed(attempt.version)
        return attempt.version

    @app.task(queue="targets")
    def targeted(attempt: Attempt) -> int:
        pause(0.2)
        return attempt.version

    @app.task
    def unique(attempt: Attempt) -> int:
        pause(0.1)
        return attempt.version

    @app.task
    def next_link(attempt: Attempt, links: int) -> Any:
        pause(0.05)
        return attempt.continue_with(next_link.draft(links - 1)) if links else attempt.version

    @app.task
    def first_link(attempt: Attempt) -> Any:
        pause(0.05)
        return attempt.continue_with(next_link.draft(1))

    @app.task
    def stepwise(attempt: Attempt) -> int:
        first = attempt.step("first", world.kernel.random.random)
        attempt.sleep("nap", 0.2)
        pause(0.1)
        assert attempt.step("first", world.kernel.random.random) == first
        return attempt.version

    @app.task
    def signalled(attempt: Attempt) -> int:
        attempt.wait_for("go", int, timeout=3600)
        return attempt.version

    @app.schedule(every=1.0, missed="all")
    @app.task
    def tick(attempt: Attempt) -> int:
        return attempt.version

    @app.task
    def dependent(attempt: Attempt) -> int:
        return attempt.version

    if limits:
        add_limited_tasks(app, pause)
    if limits and partly:
        add_task_of_some_limited_groups(app, pause)
    return app, world


def add_limited_tasks(app: App, pause: Callable[[float], None]) -> None:
    """Tasks of queues that have limits. Where a worker serves none, its claims are one statement."""

    @app.limit(max_running=MAX_RUNNING["limited"])
    @app.task(queue="limited")
    def limited(attempt: Attempt) -> int:
        pause(0.3)
        return attempt.version

    @app.limit(max_running=MAX_RUNNING_PER_GROUP["grouped"], group="*")
    @app.task(queue="grouped")
    def grouped(attempt: Attempt) -> int:
        pause(0.3)
        return attempt.version

    @app.limit(rate=RATES["rated"][0], per=RATES["rated"][1])
    @app.task(queue="rated")
    def rated(attempt: Attempt) -> int:
        return attempt.version


def add_task_of_some_limited_groups(app: App, pause: Callable[[float], None]) -> None:
    @app.limit(max_running=MAX_RUNNING_OF_GROUP["partly", "narrow"], group="narrow")
    @app.task(queue="partly")
    def partly(attempt: Attempt) -> int:
        pause(0.1)
        return attempt.version


GROUPS = ("narrow", "wide0", "wide1", "wide2")  # of the queue `partly`, where the first has a limit

#: The kinds of drafts, as often as they are made.
KINDS = (
    "quick", "quick", "medium", "medium", "long", "flaky", "snoozing", "hopeless", "pay", "pay", "targeted", "targeted",
    "limited", "limited", "grouped", "grouped", "partly", "rated", "unique", "first_link", "dependent", "stepwise",
    "signalled",
)  # fmt: skip


class Mix:
    """Makes drafts of all kinds."""

    def __init__(self, app: App, chance: random.Random) -> None:
        self._tasks, self._random = app.tasks, chance

    def drafts(self) -> list[Draft[Any]]:
        kind = self._random.choice([kind for kind in KINDS if kind in self._tasks])
        task = self._tasks[kind]
        if kind == "targeted":
            return [task.using(target=f"t{self._random.randrange(3)}", on_failure="continue").draft()]
        if kind == "grouped":
            return [task.using(group=f"g{self._random.randrange(3)}").draft()]
        if kind == "partly":
            return [task.using(group=self._random.choice(GROUPS)).draft() for _ in range(3)]
        if kind == "unique":
            number = self._random.randrange(3)
            return self._random.choice([
                [task.using(unique=f"u{number}").draft()],
                [task.using(unique=f"{WINDOWED}{number}", unique_for=WINDOW).draft()],
                [task.using(unique=f"{REPLACED}{number}", replace=True).draft()],
            ])  # fmt: skip
        if kind == "rated":
            return [task.draft() for _ in range(4)]
        if kind == "medium":
            return [task.using(max_attempts=self._random.choice([1, 5])).draft()]
        if kind == "dependent":
            first = self._tasks["medium"].draft()
            return [first, task.using(depends_on=[first], on_dependency_failure="run").draft()]
        return [task.draft()]
