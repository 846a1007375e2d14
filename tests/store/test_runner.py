"""Flows run by hand, and by the two loops of the runner."""

from __future__ import annotations

import asyncio
from collections.abc import Iterator
from typing import Any

import pytest

from relet._core.ids import make_id
from relet._core.job import Draft, State
from relet._store.flows import control, enqueue, inspect
from relet._store.query import BEGIN, Begin, Flow, Notify, Query, Row, read, write
from relet._store.runner import adrive, drive
from relet.errors import JobNotFound

AN_ID = make_id(1_700_000_000.0, b"0123456789")


class Scripted:
    """A connection that answers from a list, and records the queries."""

    def __init__(self, *answers: Any) -> None:
        self._answers: Iterator[Any] = iter(answers)
        self.asked: list[str] = []

    def begin(self) -> None:
        self.asked.append("begin")

    def execute(self, query: Query) -> list[Row]:
        self.asked.append(query.name)
        answer = next(self._answers)
        if isinstance(answer, BaseException):
            raise answer
        return list(answer)


class AsyncScripted(Scripted):
    async def begin(self) -> None:  # type: ignore[override]
        super().begin()

    async def execute(self, query: Query) -> list[Row]:  # type: ignore[override]
        await asyncio.sleep(0)
        return super().execute(query)


@pytest.fixture(params=["sync", "async"])
def run(request: pytest.FixtureRequest) -> Any:
    """Run a flow on scripted answers. Returns its result, its notifications and its queries."""

    def run_sync(flow: Flow[Any], *answers: Any) -> tuple[Any, list[Notify], list[str]]:
        connection = Scripted(*answers)
        return (*drive(flow, connection), connection.asked)

    def run_async(flow: Flow[Any], *answers: Any) -> tuple[Any, list[Notify], list[str]]:
        connection = AsyncScripted(*answers)
        return (*asyncio.run(adrive(flow, connection)), connection.asked)

    return run_sync if request.param == "sync" else run_async


def test_rows_go_in_and_the_result_comes_out(run: Any) -> None:
    def flow() -> Flow[int]:
        yield BEGIN
        ((one,),) = yield read("first")
        ((two,),) = yield write("second")
        return int(one + two)

    assert run(flow(), [(1,)], [(2,)]) == (3, [], ["begin", "first", "second"])


def test_a_flow_that_asks_nothing_is_done(run: Any) -> None:
    def flow() -> Flow[str]:
        return "at once"
        yield BEGIN

    assert run(flow()) == ("at once", [], [])


def test_wakes_are_collected_each_once_in_order(run: Any) -> None:
    def flow() -> Flow[None]:
        assert (yield Notify("done")) == []
        yield Notify("jobs")
        yield Notify("done")
        yield write("something")

    assert run(flow(), [])[1] == [Notify("done"), Notify("jobs")]


def test_an_error_is_thrown_into_the_flow_which_may_catch_it(run: Any) -> None:
    def flow() -> Flow[str]:
        try:
            yield write("refused")
        except ValueError as error:
            yield write("instead")
            return f"caught {error}"
        return "not caught"

    assert run(flow(), ValueError("this"), []) == ("caught this", [], ["refused", "instead"])


def test_an_error_that_the_flow_does_not_catch_comes_out_and_the_flow_is_closed(run: Any) -> None:
    closed: list[str] = []

    def flow() -> Flow[None]:
        try:
            yield write("refused")
        finally:
            closed.append("closed")

    with pytest.raises(ValueError, match="this"):
        run(flow(), ValueError("this"))
    assert closed == ["closed"]


def test_a_flow_that_catches_an_error_and_goes_on_can_fail_again(run: Any) -> None:
    def flow() -> Flow[int]:
        failures = 0
        for _ in range(3):
            try:
                yield write("refused")
            except ValueError:
                failures += 1
        return failures

    assert run(flow(), ValueError(), ValueError(), [])[0] == 2


class Stop(BaseException):
    """Like KeyboardInterrupt: not thrown into the flow."""


def test_an_interrupt_is_not_thrown_into_the_flow_but_closes_it(run: Any) -> None:
    seen: list[str] = []

    def flow() -> Flow[None]:
        try:
            yield write("interrupted")
        except GeneratorExit:
            seen.append("closed")
            raise
        except BaseException:
            seen.append("thrown")
            raise

    with pytest.raises(Stop):
        run(flow(), Stop())
    assert seen == ["closed"]


def test_a_cancelled_coroutine_closes_its_flow() -> None:
    closed: list[str] = []

    class Hangs(AsyncScripted):
        async def execute(self, query: Query) -> list[Row]:  # type: ignore[override]
            await asyncio.sleep(60)
            return []

    def flow() -> Flow[None]:
        try:
            yield write("slow")
        finally:
            closed.append("closed")

    async def main() -> None:
        with pytest.raises(TimeoutError):
            async with asyncio.timeout(0.01):
                await adrive(flow(), Hangs())

    asyncio.run(main())
    assert closed == ["closed"]


def test_an_error_of_the_flow_itself_comes_out(run: Any) -> None:
    def flow() -> Flow[None]:
        yield write("fine")
        raise LookupError("in the flow")

    with pytest.raises(LookupError, match="in the flow"):
        run(flow(), [])


# real flows, by hand


def test_a_plain_enqueue_is_one_statement() -> None:
    flow = enqueue.enqueue([Draft(AN_ID, "t", "{}")])
    step = next(flow)
    assert getattr(step, "name", step) == "enqueue/insert", "no transaction, no read before"
    with pytest.raises(StopIteration) as end:
        flow.send([(AN_ID, "queued", None, 1.0, 1.0, False)])
    (job,) = end.value.value
    assert (job.id, job.state, job.existing) == (AN_ID, State.QUEUED, False)


def test_a_sleeping_worker_is_woken_by_enqueue_and_a_busy_one_is_not() -> None:
    for armed in (True, False):
        _, wakes = drive(
            enqueue.enqueue([Draft(AN_ID, "t", "{}")]), Scripted([(AN_ID, "queued", None, 1.0, 1.0, armed)])
        )
        assert wakes == ([Notify("jobs", sent=True)] if armed else [])


def test_a_repeated_enqueue_reads_before_it_inserts() -> None:
    flow = enqueue.enqueue_again([Draft(AN_ID, "t", "{}")])
    assert isinstance(next(flow), Begin)
    first_read = flow.send([])
    assert isinstance(first_read, Query)
    assert first_read.name == "inspect/get"
    flow.close()


def test_a_verb_locks_before_it_decides() -> None:
    asked: list[str] = []
    flow = control.cancel(AN_ID)
    step: Any = next(flow)
    with pytest.raises(JobNotFound):
        while True:
            asked.append("begin" if isinstance(step, Begin) else step.name)
            step = flow.send([])
    assert asked[0] == "begin"
    assert asked.index("control/lock_job") < asked.index("inspect/get")


def test_a_read_only_flow_only_reads() -> None:
    for flow in (
        inspect.get(AN_ID),
        inspect.queues(),
        inspect.explain(AN_ID),
        inspect.attempts(AN_ID),
        inspect.dependencies(AN_ID),
    ):
        step = next(flow)
        assert isinstance(step, Query)
        assert not step.writes
        flow.close()
