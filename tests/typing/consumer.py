"""What users write, as type checkers must see it: this file has no error in mypy --strict nor in pyright strict."""

from __future__ import annotations

from collections.abc import AsyncIterator, Iterable, Iterator
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from typing import Any, TypeVar, assert_type
from uuid import UUID

from relet import App as RealApp
from relet import AsyncClient, JobCancelled, JobFailed, injected
from relet import Client as RealClient
from relet._attempts.attempt import Attempt
from relet._core.backoff import Backoff
from relet._core.job import Draft, Job
from relet._tasks.task import ConfiguredTask, Enqueues, EnqueuesAsync, Task, TaskRegistry
from relet.testing import Harness
from relet.types import ScheduleInfo, Tick

R = TypeVar("R")


class Client(Enqueues):
    def enqueue_many(self, drafts: Iterable[Draft[R]]) -> list[Job[R]]:
        return [self.enqueue(draft) for draft in drafts]

    def result(self, job: Job[R]) -> R:
        raise NotImplementedError


class App(TaskRegistry):
    """Has clients, as far as a type checker can tell."""

    @property
    def client(self) -> Client:
        raise NotImplementedError

    @property
    def aclient(self) -> EnqueuesAsync:
        raise NotImplementedError


app = App()


@dataclass
class Order:
    id: UUID
    lines: list[tuple[str, int]]


@app.task
async def greet(name: str) -> str:
    return f"Hello, {name}"


@app.task(queue="billing", max_attempts=5, backoff=Backoff(base=1, max=60), lease=30, timeout=300)
def charge(attempt: Attempt, account: str, cents: int) -> str:
    attempt.check()
    return f"{account} pays {cents}"


@app.task
def ship(order: Order, *, express: bool = False) -> Order:
    return order


@app.task(name="tidy-up", process=True, on_expired="fail", on_shutdown="pause")
def tidy() -> None: ...


@app.task
async def bill(attempt: Attempt, order: Order) -> str:
    if order.lines:
        return attempt.continue_with(charge.draft("acct-7", 500))
    return await greet("Ada")


@app.task
def collect(*names: str, **amounts: int) -> dict[str, int]:
    return dict.fromkeys(names, 0) | amounts


billing = app.task(queue="billing")


@billing(priority=10)
def refund(account: str) -> int:
    return len(account)


@app.task
def anything(value: Any, count: int) -> int:
    return count


@app.task
async def whatever(value: object) -> int:
    return 1


def enqueue() -> None:
    assert_type(greet.enqueue("Ada"), Job[str])
    assert_type(greet.enqueue(name="Ada"), Job[str])
    assert_type(greet.draft("Ada"), Draft[str])
    assert_type(charge.enqueue("acct-7", cents=500), Job[str])
    assert_type(ship.enqueue(Order(UUID(int=0), []), express=True), Job[Order])
    assert_type(tidy.enqueue(), Job[None])
    assert_type(bill.enqueue(Order(UUID(int=0), [])), Job[str])
    assert_type(collect.enqueue("a", "b", c=1), Job[dict[str, int]])
    assert_type(refund.enqueue("acct-7"), Job[int])
    anything.enqueue("a", count=1)  # for mypy a task whose first parameter is Any is itself Any
    anything.enqueue(value="a", count=1)
    assert_type(whatever.enqueue(value="a"), Job[int])
    assert_type(app.client.result(greet.enqueue("Ada")), str)


async def enqueue_async() -> None:
    assert_type(await greet.aenqueue("Ada"), Job[str])
    assert_type(await charge.using(target="acct-7").aenqueue("acct-7", 500), Job[str])
    assert_type(await bill.aenqueue(Order(UUID(int=0), [])), Job[str])


def options(connection: object) -> None:
    soon = datetime.now(UTC) + timedelta(minutes=1)
    first = greet.enqueue("Ada")
    with_options = charge.using(target="acct-7", priority=5, delay=60, unique="inv-9")
    assert_type(with_options.enqueue("acct-7", 500), Job[str])
    assert_type(with_options.using(unique_for=3600, run_at=soon, delay=None).draft("acct-7", cents=500), Draft[str])
    assert_type(charge.using(connection=connection, tenant="acme").enqueue("acct-7", 500), Job[str])
    assert_type(tidy.using(depends_on=[first, greet.draft("Bob"), first.id, UUID(first.id)]).enqueue(), Job[None])
    app.client.enqueue_many([greet.draft("Ada"), charge.using(target="x").draft("x", 5), tidy.draft()])
    prepared: ConfiguredTask[[str, int], str] = with_options
    prepared.enqueue("acct-7", 500)


def greetings(names: list[str]) -> Iterator[Draft[str]]:
    for name in names:
        yield greet.draft(name)


def many(client: RealClient) -> None:
    jobs = client.enqueue_many([greet.draft("Ada"), charge.draft("acct-7", 500)])
    assert_type(jobs, list[Job[str]])
    assert_type(client.enqueue_many(greetings(["Ada", "Bob"])), list[Job[str]])
    assert_type(client.enqueue_many(refund.draft(account) for account in ("a", "b")), list[Job[int]])
    client.enqueue_many([greet.draft("Ada"), tidy.draft(), refund.draft("a")])
    assert_type(client.results(jobs), list[str])
    assert_type(client.results((job for job in jobs), timeout=5), list[str])
    assert_type(client.results(jobs, return_exceptions=True), list[str | JobFailed | JobCancelled])
    assert_type(client.results([job.id for job in jobs]), list[Any])
    assert_type(client.wait_many([jobs[0], jobs[1].id]), list[Job[Any]])
    assert_type(client.chain(jobs[0])[-1], Job[Any])


async def many_async(client: AsyncClient) -> None:
    jobs = await client.enqueue_many(greetings(["Ada"]))
    assert_type(jobs, list[Job[str]])
    assert_type(await client.results(jobs), list[str])
    assert_type(await client.results(jobs, return_exceptions=True), list[str | JobFailed | JobCancelled])


def counted(word: str, times: int = 1) -> int:
    return len(word) * times


async def fetched(url: str) -> Order:
    return Order(UUID(int=0), [(url, 1)])


real = RealApp()


@real.schedule("*/5 * * * *", timezone="Europe/Berlin", arguments={"connection": "x"}, missed="skip", overlap="wait")
@real.task
def sweep(attempt: Attempt, connection: str) -> int:
    assert_type(attempt.step("count", counted, "word", times=2), int)
    assert_type(attempt.dependency_result(refund), int)
    assert_type(attempt.dependency_results(greet), list[str])
    assert_type(attempt.wait_for("go", Order, timeout=5), Order)
    attempt.sleep("nap", 5)
    with attempt.transaction() as tx:
        assert_type(tx.enqueue(greet.draft("Ada")), Job[str])
        assert_type(tx.enqueue_many([refund.draft("a")]), list[Job[int]])
        tx.connection.execute("select 1")
        return tx.succeed(5)


@real.task
async def bigger(attempt: Attempt, connection: object) -> str:
    assert_type(await attempt.astep("fetch", fetched, "http://x"), Order)
    assert_type(await attempt.await_for("go", int), int)
    async with attempt.transaction() as tx:
        assert_type(await tx.enqueue(greet.draft("Ada")), Job[str])
    return await attempt.asucceed(attempt.continue_with(greet.draft("Ada")), connection=connection)


class Pool:
    """Made by a resource."""


class Session:
    """Made by an async resource."""


@real.resource
def pool() -> Iterator[Pool]:
    yield Pool()


@real.resource
async def session(pool: Pool) -> AsyncIterator[Session]:
    yield Session()


@real.resource
def start(pool: Pool, session: Session) -> None: ...


@real.task
def post(attempt: Attempt, to: str, copies: int = 1, pool: Pool = injected) -> str:
    assert_type(pool, Pool)
    return to


@real.task
async def fetch(url: str, *, session: Session = injected, pool: Pool = injected) -> int:
    return len(url)


async def resources(attempt: Attempt, harness: Harness) -> None:
    assert_type(post.enqueue("ada"), Job[str])
    assert_type(post.enqueue(to="ada", copies=2), Job[str])
    assert_type(await fetch.using(delay=5).aenqueue("http://x"), Job[int])
    assert_type(post(attempt, "ada", pool=Pool()), str)
    assert_type(await fetch("http://x", session=Session(), pool=Pool()), int)
    assert_type(next(pool()), Pool)
    with harness.override(Pool, Pool()):
        assert_type(harness.perform(post, "ada"), str)


def schedules(client: RealClient) -> None:
    assert_type(sweep.enqueue("x"), Job[int])
    assert_type(client.schedules.put("nightly", sweep.draft("x"), "0 3 * * *"), ScheduleInfo)
    assert_type(client.schedules.all(), list[ScheduleInfo])
    assert_type(client.schedules.ticks("nightly"), list[Tick])
    client.limit_queue("mail", rate=100, per=60, group="*", fair=True)
    client.signal(sweep.enqueue("x"), "go", 5)


async def call(attempt: Attempt) -> None:
    assert_type(await greet("Ada"), str)
    assert_type(charge(attempt, "acct-7", 500), str)
    assert_type(ship(Order(UUID(int=0), []), express=True), Order)
    assert_type(await bill(attempt, Order(UUID(int=0), [])), str)
    anything("a", 1)


def lookup(task: Task[[str], object]) -> None:
    assert_type(app.lookup("greet"), Task[..., Any])
    assert_type(app.tasks["greet"].draft("Ada", 1, x=2), Draft[Any])
    assert_type(greet.decode_result('"Hello"'), str)
    task.enqueue("Ada")


def pass_around() -> None:
    lookup(greet)
    lookup(refund)
