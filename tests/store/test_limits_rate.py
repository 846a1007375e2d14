"""Rates and fair shares by a clock that only the test moves."""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from typing import Any

import pytest

from relet._core.job import Claimed, Raised, Snoozed
from relet._store.flows import control, inspect, limits
from relet._store.flows.claim_scope import Claim
from relet._store.query import Flow, Query, read, texts
from relet._store.sqlite import SQLiteStore
from tests.harness import MEMORY, StoreHarness, draft, store_harness
from tests.store.interleave import Background


@pytest.fixture
def b(either_harness: StoreHarness) -> StoreHarness:
    return either_harness


def rate(
    harness: StoreHarness, number: int | None, per: float = 60.0, *, group: str = "", queue: str = "default"
) -> None:
    harness.run(control.set_queue, queue, rate=(group, number, per))


def fair(harness: StoreHarness, on: bool = True, queue: str = "default") -> None:
    harness.run(control.set_queue, queue, fair=on)


def add(harness: StoreHarness, keys: Sequence[str | None], **options: Any) -> None:
    harness.enqueue(*(draft(group=None if key == "-" else key, **options) for key in keys))


def claim(harness: StoreHarness, n: int = 10, queues: tuple[str, ...] = ("default",), **options: Any) -> Claim:
    return harness.run(lambda: harness.claim_flow(n, queues, **options))


def served(jobs: list[Claimed]) -> str:
    return "".join(sorted(job.group or "-" for job in jobs))


def explained(harness: StoreHarness, key: str | None = None) -> list[tuple[str, str, float]]:
    """Which rates would keep a job of this key waiting, and for how long."""
    found = harness.run(lambda: limits.used_up("default", key))
    return [(one.queue, one.group, round(one.again_in, 3)) for one in found]


# Rates


def test_no_more_start_within_any_window_than_the_rate_and_as_many_as_it_allows(harness: StoreHarness) -> None:
    """A window that slides, not one that begins anew: starts at its end count for the next."""
    rate(harness, 5, 10.0)
    harness.enqueue(*(draft() for _ in range(100)))
    starts: list[float] = []
    for step in (0, 9.0, 0.5, 0.5, 0.1, 8.9, 1.0, 0.1, 30, 9.9, 0.2):
        harness.later(step)
        for want in (2, 1, 9):
            starts += [harness.now] * len(harness.claim(want))
        assert len([one for one in starts if one > harness.now - 10.0]) == 5, (
            "never more, and never less than it may be"
        )
    assert len(starts) == 25


def test_there_is_a_word_on_when_there_will_be_room(harness: StoreHarness) -> None:
    rate(harness, 2, 10.0)
    harness.enqueue(*(draft() for _ in range(5)))
    assert claim(harness, 1).again_in is None
    assert claim(harness.later(4), 1).again_in == pytest.approx(6)
    assert claim(harness.later(1)).jobs == []
    assert claim(harness).again_in == pytest.approx(5)
    assert explained(harness) == [("default", "", 5.0)]
    found = claim(harness.later(5.001))
    assert len(found.jobs) == 1
    assert found.again_in == pytest.approx(4, abs=0.01)
    assert explained(harness.later(20)) == []


def test_a_rate_that_is_used_up_at_once_says_so(harness: StoreHarness) -> None:
    rate(harness, 3, 0.5)
    harness.enqueue(*(draft() for _ in range(5)))
    assert claim(harness).again_in == pytest.approx(0.5)


def test_each_key_has_a_separate_rate_and_one_may_have_another(harness: StoreHarness) -> None:
    rate(harness, 2, group="*")
    rate(harness, 4, group="v")
    add(harness, "aaaaabvvvvvv---")
    assert served(harness.claim(50)) == "---aabvvvv"
    assert served(harness.claim(50)) == ""
    assert explained(harness, "a") == [("default", "*", 60.0)]
    assert explained(harness, "v") == [("default", "v", 60.0)], "its own, not that of each"
    assert explained(harness, "b") == explained(harness, None) == []
    harness.later(60)
    assert served(harness.claim(50)) == "aavv"


def test_a_rate_of_one_key_leaves_the_others_alone(harness: StoreHarness) -> None:
    rate(harness, 1, group="a")
    add(harness, "aaabbb--")
    assert served(harness.claim(50)) == "--abbb"


def test_rates_of_the_queue_of_keys_and_of_all_hold_together(harness: StoreHarness) -> None:
    rate(harness, 5)
    rate(harness, 2, group="*")
    rate(harness, 7, queue="*")
    add(harness, "aaabbbccc")
    add(harness, "xxxxxxx", queue="other")
    jobs = harness.claim(50, ("default", "other"))
    assert Counter(job.queue for job in jobs) == {"default": 5, "other": 2}
    assert max(Counter(job.group for job in jobs if job.queue == "default").values()) == 2
    assert harness.claim(50, ("other", "default")) == []
    key = next(job.group for job in jobs if job.queue == "default")
    assert {("*", "", 60.0), ("default", "", 60.0)} <= set(explained(harness, key))


def test_a_rate_for_all_queues_together(harness: StoreHarness) -> None:
    rate(harness, 3, queue="*")
    add(harness, "aaaa", queue="one")
    add(harness, "bbbb", queue="two")
    assert sum(len(harness.claim(2, ("one", "two"))) for _ in range(4)) == 3
    harness.later(60)
    assert len(harness.claim(50, ("one", "two"))) == 3


def test_retries_and_snoozes_are_starts_as_well(harness: StoreHarness) -> None:
    rate(harness, 2)
    job = harness.claim_new()
    harness.settle((job.lease, Raised("no", delay=0.0)))
    harness.promote()
    (job,) = harness.claim(10)
    harness.settle((job.lease, Snoozed(0.0)))
    harness.promote()
    assert harness.claim(10) == []


def test_a_rate_of_none_starts_nothing_and_lifted_everything(harness: StoreHarness) -> None:
    rate(harness, 0)
    rate(harness, 0, group="x")
    add(harness, "x-")
    assert (claim(harness).jobs, claim(harness).again_in) == ([], None)
    assert [one[1] for one in sorted(explained(harness, "x"))] == ["", "x"]
    rate(harness, None)
    assert served(harness.claim(10)) == "-"
    rate(harness, None, group="x")
    assert served(harness.claim(10)) == "x"
    assert harness.count("rates") == 0
    assert harness.count("queues", "limited") == 0


def test_a_rate_changed_at_run_time_counts_jobs_that_have_started(harness: StoreHarness) -> None:
    rate(harness, 2, 10.0)
    harness.enqueue(*(draft() for _ in range(20)))
    assert len(harness.claim(10)) == 2
    rate(harness, 5, 10.0)
    assert len(harness.claim(10)) == 3
    rate(harness, 1, 10.0)
    assert harness.claim(10) == []
    harness.later(10)
    assert len(harness.claim(10)) == 1


def test_a_rate_and_a_limit_of_running_jobs_together(harness: StoreHarness) -> None:
    harness.limit("default", 2)
    rate(harness, 3)
    harness.enqueue(*(draft() for _ in range(9)))
    first = harness.claim(10)
    assert len(first) == 2
    for job in first:
        harness.succeed(job)
    (third,) = harness.claim(10)
    harness.succeed(third)
    assert harness.claim(10) == [], "the rate"
    harness.later(60)
    assert len(harness.claim(10)) == 2, "the limit"


@pytest.mark.parametrize("losses", [1, 2])
@pytest.mark.parametrize("key", ["", "*"])
def test_jobs_that_have_lost_workers_obey(harness: StoreHarness, losses: int, key: str) -> None:
    add(harness, "aaa")
    for number in range(losses):
        assert len(harness.claim(10, rescue=True, alone=number == 2)) == 3
        harness.later(100)
        assert len(harness.reap()) == 3
        harness.later(100)
        harness.promote()
    rate(harness, 1, group=key)
    found = [claim(harness, 10, rescue=True, alone=losses == 2) for _ in range(3)]
    assert [len(one.jobs) for one in found] == [1, 0, 0]
    harness.later(60)
    assert len(claim(harness, 10, rescue=True, alone=losses == 2).jobs) == 1


def test_a_claim_whose_answer_was_lost_has_counted_once(harness: StoreHarness) -> None:
    rate(harness, 2)
    harness.enqueue(*(draft() for _ in range(5)))
    token = "0192f3a0-7c1e-4b3a-9d1f-2f6f5a1c0de1"
    assert len(claim(harness, 1, token=token).jobs) == 1
    assert len(claim(harness, 1, token=token, again=True).jobs) == 1
    assert len(harness.claim(5)) == 1


def test_starts_are_forgotten_when_no_rate_needs_them(harness: StoreHarness) -> None:
    rate(harness, 5, 10.0)
    rate(harness, 5, 100.0, group="*")
    for _ in range(30):
        add(harness, "ab")
        harness.later(10)
        harness.claim(10)
    assert harness.count("starts") <= 22


@pytest.mark.long
def test_a_high_rate_is_kept_in_few_rows_and_neither_exceeded_nor_wasted(harness: StoreHarness) -> None:
    rate(harness, 1001, 10.0)
    add(harness, ["a"] * 3500)
    starts: list[float] = []
    for _ in range(60):
        harness.later(0.4973)
        for _ in range(2):
            starts += [harness.now] * len(harness.claim(40))
    assert len(starts) >= 2900
    for first, beyond in zip(starts, starts[1001:], strict=False):
        assert beyond - first >= 10.0 - 1e-6
    assert harness.count("starts") <= 25
    assert harness.query("select max(number) from {s}starts")[0][0] == 80


def test_two_claims_at_once_do_not_share_the_last_start(pg_harness: StoreHarness) -> None:
    rate(pg_harness, 3)
    pg_harness.enqueue(*(draft() for _ in range(9)))
    first = pg_harness.session()
    assert len(first.leave_open(pg_harness.claim_flow(2)).jobs) == 2
    second = Background(lambda: pg_harness.claim(9))
    assert second.blocked
    first.commit()
    assert len(second.result()) == 1


# Fair shares


def test_small_keys_are_served_in_turn_beside_a_backlog(harness: StoreHarness) -> None:
    fair(harness)
    add(harness, ["big"] * 2000)
    add(harness, [f"s{n}" for n in range(10) for _ in range(5)])
    seen: Counter[str | None] = Counter()
    for _ in range(11):
        seen.update(job.group for job in harness.claim(5))
    assert seen == {"big": 5, **{f"s{n}": 5 for n in range(10)}}, "five rounds, each key once in each"


def test_one_at_a_time_goes_round(harness: StoreHarness) -> None:
    fair(harness)
    add(harness, "aaaabbbbcccc--")
    order = "".join(served(harness.claim(1)) for _ in range(14))
    assert sorted(order[:4]) == sorted(order[4:8]) == list("-abc")
    assert order[:4] == order[4:8]
    assert sorted(order[8:]) == list("aabbcc")


def test_slots_that_some_groups_leave_free_are_for_the_others(harness: StoreHarness) -> None:
    """As much as is asked for, if there is as much: few of one key, none of another's task, plenty of the last."""
    fair(harness)
    add(harness, ["a", "b", *("c" * 50)])
    add(harness, ["x"] * 50, task="nobodys")
    assert served(harness.claim(30)) == "ab" + "c" * 28


def test_within_a_key_priority_then_order(harness: StoreHarness) -> None:
    fair(harness)
    low, high, mid = harness.enqueue(draft(group="a", priority=-5), draft(group="a", priority=5), draft(group="a"))
    assert [harness.claim(1)[0].id for _ in range(3)] == [high.id, mid.id, low.id]


@pytest.mark.parametrize("want", [1, 7])
def test_keys_whose_task_no_worker_knows_do_not_block(harness: StoreHarness, want: int) -> None:
    fair(harness)
    add(harness, [f"a{n:04}" for n in range(500)], task="nobodys")
    add(harness, ["zz"] * 20)
    assert len(harness.claim(want)) == want
    assert len(harness.claim(want)) == want


def test_more_such_keys_than_one_claim_looks_at_are_passed_in_time(
    harness: StoreHarness, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(limits, "MAX_GROUPS", 10)
    monkeypatch.setattr(limits, "MAX_STEPS", 3)
    fair(harness)
    add(harness, [f"a{n:04}" for n in range(100)], task="nobodys")
    add(harness, ["zz"] * 3)
    assert any(harness.claim(1) for _ in range(10))


def test_thousands_of_keys_are_each_served_once_before_any_is_served_twice(harness: StoreHarness) -> None:
    fair(harness)
    add(harness, [f"k{n:04}" for n in range(1500) for _ in range(2)])
    seen: Counter[str | None] = Counter()
    for _ in range(15):
        seen.update(job.group for job in harness.claim(100))
    assert len(seen) == 1500
    assert set(seen.values()) == {1}


def test_keys_at_their_rate_are_passed_over_however_many(harness: StoreHarness) -> None:
    fair(harness)
    rate(harness, 1, group="*")
    names = [f"k{n:03}" for n in range(450)]
    add(harness, names * 2)
    for _ in range(9):
        assert len(harness.claim(50)) == 50
    assert claim(harness, 50).jobs == []
    add(harness, ["zz", "aa"])
    assert sorted(job.group or "" for job in harness.claim(50)) == ["aa", "zz"]


def test_a_queue_of_keys_is_served_beside_one_that_is_never_empty(harness: StoreHarness) -> None:
    """In the order asked for, which workers change each time: neither starves the other."""
    fair(harness, queue="shared")
    add(harness, "ab", queue="shared")
    add(harness, ["x"] * 50, queue="bulk")
    first = harness.claim(2, ("shared", "bulk"))
    assert [job.queue for job in first] == ["shared", "shared"]
    assert {job.queue for job in harness.claim(5, ("bulk", "shared"))} == {"bulk"}


def test_fairness_can_be_ended(harness: StoreHarness) -> None:
    fair(harness)
    add(harness, "aaab")
    assert served(harness.claim(2)) == "ab"
    fair(harness, False)
    assert harness.count("queues", "limited") == 0
    assert served(harness.claim(2)) == "aa"


def test_a_paused_queue_of_keys_gives_nothing(harness: StoreHarness) -> None:
    fair(harness)
    add(harness, "ab")
    harness.run(control.set_queue, "default", paused=True)
    assert harness.claim(5) == []
    harness.run(control.set_queue, "default", paused=False)
    assert served(harness.claim(5)) == "ab"


def test_explain_tells_of_a_rate_that_is_used_up(harness: StoreHarness) -> None:
    rate(harness, 1, 3600.0)
    rate(harness, 0, 3600.0, group="*")
    rate(harness, 9, 3600.0, group="free")
    harness.now = harness.run(_clock)
    first = harness.claim_new(group="free")
    id = harness.add(group="a")
    said = harness.run(inspect.explain, id)
    assert said[0].startswith("queue default may start 1 jobs in 3600 s, and has; there is room in 3")
    assert said[1] == "queue default may start no jobs of group a"
    assert len(said) == 2
    assert harness.state(first.id) == "running"


# Cost


def noted(flow: Flow[Any], names: list[str]) -> Flow[Any]:
    """The same flow; the names of its statements are noted."""
    try:
        step = next(flow)
        while True:
            if isinstance(step, Query):
                names.append(step.name)
            step = flow.send((yield step))
    except StopIteration as end:
        return end.value


def test_queues_without_limits_do_not_pay(harness: StoreHarness) -> None:
    rate(harness, 5, queue="rated")
    fair(harness, queue="shared")
    add(harness, "aa", queue="plain")
    names: list[str] = []
    found = harness.run(lambda: noted(harness.claim_flow(5, ("plain",)), names))
    assert (len(found.jobs), names) == (2, ["claim/claim", "claim/queue_flags"])
    add(harness, "aa", queue="plain")
    harness.run(lambda: noted(harness.claim_flow(2, ("plain", "rated", "shared"), check_flags=False), names))
    assert names == ["claim/claim", "claim/queue_flags", "claim/claim"], "nor those that come first and have enough"


def test_the_plans_on_sqlite_go_by_the_index_of_keys() -> None:
    with store_harness(MEMORY, "relet") as harness:
        assert isinstance(harness.store, SQLiteStore)
        connection = harness.store._open_writer()

        def plan(name: str, **params: Any) -> list[str]:
            (text,) = texts(name, "sqlite", "named", harness.store.quoted)
            asked = connection.execute(f"explain query plan {text.sql}", {**dict.fromkeys(text.names), **params})
            return [row[3] for row in asked.fetchall() if "jobs" in row[3]]

        for shown in (
            plan("limits/next_groups", limit=200),
            plan("limits/claim_groups", groups="[]", tasks="[]", limit=5),
        ):
            searches = [one for one in shown if "jobs_group" in one]
            assert searches
            assert not [one for one in shown if one.startswith("SCAN")], shown
            assert all("queue=? AND suspect=? AND group_key" in one for one in searches), shown


def _clock() -> Flow[float]:
    return float((yield read("inspect/clock"))[0][0])


def test_jobs_without_a_key_are_found_behind_thousands_of_a_key_that_may_not_start(
    shared_harness: StoreHarness,
) -> None:
    """Those that were there before keys mattered, and those that came later."""
    early = shared_harness.add(queue="q")
    shared_harness.run(control.set_queue, "q", rate=("full", 0, 1.0))
    while shared_harness.run(control.backfill_group, "q", limit=1):
        pass
    shared_harness.enqueue(*(draft(queue="q", group="full", priority=9) for _ in range(2500)))
    late = shared_harness.add(queue="q")
    assert {job.id for job in shared_harness.claim(queues=("q",))} == {early, late}
    job = shared_harness.get(late)
    assert job is not None
    assert job.group is None
