"""Rates and fair shares by a clock that only the test moves."""

from __future__ import annotations

from collections import Counter
from typing import Any

import pytest

from relet._core.job import Claimed, Raised, Snoozed
from relet._store.flows import control, enqueue, inspect, limits
from relet._store.flows.claim_scope import Claim
from relet._store.query import Flow, Query, read, texts
from relet._store.sqlite import SQLiteStore
from tests.store.interleave import MEMORY, Background, Bench, bench, draft
from tests.store.world import World


@pytest.fixture
def b(either: Bench) -> Bench:
    return either


def rate(b: Bench, number: int | None, per: float = 60.0, *, group: str = "", queue: str = "default") -> None:
    b.run(control.set_queue, queue, rate=(group, number, per))


def fair(b: Bench, on: bool = True, queue: str = "default") -> None:
    b.run(control.set_queue, queue, fair=on)


def add(b: Bench, keys: str | list[str | None], **options: Any) -> None:
    b.enqueue(*(draft(group=None if key == "-" else key, **options) for key in keys))


def claim(b: Bench, n: int = 10, queues: tuple[str, ...] = ("default",), **options: Any) -> Claim:
    return b.run(lambda: b.claim_flow(n, queues, **options))


def served(jobs: list[Claimed]) -> str:
    return "".join(sorted(job.group or "-" for job in jobs))


def explained(b: Bench, key: str | None = None) -> list[tuple[str, str, float]]:
    """Which rates would keep a job of this key waiting, and for how long."""
    found = b.run(lambda: limits.used_up("default", key))
    return [(one.queue, one.group, round(one.again_in, 3)) for one in found]


# Rates


def test_no_more_start_within_any_window_than_the_rate_and_as_many_as_it_allows(b: Bench) -> None:
    """A window that slides, not one that begins anew: starts at its end count for the next."""
    rate(b, 5, 10.0)
    b.enqueue(*(draft() for _ in range(100)))
    starts: list[float] = []
    for step in (0, 9.0, 0.5, 0.5, 0.1, 8.9, 1.0, 0.1, 30, 9.9, 0.2):
        b.later(step)
        for want in (2, 1, 9):
            starts += [b.now] * len(b.claim(want))
        assert len([one for one in starts if one > b.now - 10.0]) == 5, "never more, and never less than it may be"
    assert len(starts) == 25


def test_there_is_a_word_on_when_there_will_be_room(b: Bench) -> None:
    rate(b, 2, 10.0)
    b.enqueue(*(draft() for _ in range(5)))
    assert claim(b, 1).again_in is None
    assert claim(b.later(4), 1).again_in == pytest.approx(6)
    assert (len(claim(b.later(1)).jobs), claim(b).again_in) == (0, pytest.approx(5))
    assert explained(b) == [("default", "", 5.0)]
    found = claim(b.later(5.001))
    assert (len(found.jobs), found.again_in) == (1, pytest.approx(4, abs=0.01))
    assert explained(b.later(20)) == []


def test_a_rate_that_is_used_up_at_once_says_so(b: Bench) -> None:
    rate(b, 3, 0.5)
    b.enqueue(*(draft() for _ in range(5)))
    assert claim(b).again_in == pytest.approx(0.5)


def test_each_key_has_a_rate_of_its_own_and_one_may_have_another(b: Bench) -> None:
    rate(b, 2, group="*")
    rate(b, 4, group="v")
    add(b, "aaaaabvvvvvv---")
    assert served(b.claim(50)) == "---aabvvvv"
    assert served(b.claim(50)) == ""
    assert explained(b, "a") == [("default", "*", 60.0)]
    assert explained(b, "v") == [("default", "v", 60.0)], "its own, not that of each"
    assert explained(b, "b") == explained(b, None) == []
    b.later(60)
    assert served(b.claim(50)) == "aavv"


def test_a_rate_of_one_key_leaves_the_others_alone(b: Bench) -> None:
    rate(b, 1, group="a")
    add(b, "aaabbb--")
    assert served(b.claim(50)) == "--abbb"


def test_rates_of_the_queue_of_keys_and_of_all_hold_together(b: Bench) -> None:
    rate(b, 5)
    rate(b, 2, group="*")
    rate(b, 7, queue="*")
    add(b, "aaabbbccc")
    add(b, "xxxxxxx", queue="other")
    jobs = b.claim(50, ("default", "other"))
    assert Counter(job.queue for job in jobs) == {"default": 5, "other": 2}
    assert max(Counter(job.group for job in jobs if job.queue == "default").values()) == 2
    assert b.claim(50, ("other", "default")) == []
    key = next(job.group for job in jobs if job.queue == "default")
    assert {("*", "", 60.0), ("default", "", 60.0)} <= set(explained(b, key))


def test_a_rate_for_all_queues_together(b: Bench) -> None:
    rate(b, 3, queue="*")
    add(b, "aaaa", queue="one")
    add(b, "bbbb", queue="two")
    assert sum(len(b.claim(2, ("one", "two"))) for _ in range(4)) == 3
    b.later(60)
    assert len(b.claim(50, ("one", "two"))) == 3


def test_retries_and_snoozes_are_starts_as_well(b: Bench) -> None:
    rate(b, 2)
    job = b.take()
    b.settle((job.lease, Raised("no", delay=0.0)))
    b.promote()
    (job,) = b.claim(10)
    b.settle((job.lease, Snoozed(0.0)))
    b.promote()
    assert b.claim(10) == []


def test_a_rate_of_none_starts_nothing_and_lifted_everything(b: Bench) -> None:
    rate(b, 0)
    rate(b, 0, group="x")
    add(b, "x-")
    assert (claim(b).jobs, claim(b).again_in) == ([], None)
    assert [one[1] for one in sorted(explained(b, "x"))] == ["", "x"]
    rate(b, None)
    assert served(b.claim(10)) == "-"
    rate(b, None, group="x")
    assert served(b.claim(10)) == "x"
    assert b.count("rates") == 0
    assert b.count("queues", "limited") == 0


def test_a_rate_changed_at_run_time_counts_what_has_started(b: Bench) -> None:
    rate(b, 2, 10.0)
    b.enqueue(*(draft() for _ in range(20)))
    assert len(b.claim(10)) == 2
    rate(b, 5, 10.0)
    assert len(b.claim(10)) == 3
    rate(b, 1, 10.0)
    assert b.claim(10) == []
    b.later(10)
    assert len(b.claim(10)) == 1


def test_a_rate_and_a_limit_of_running_jobs_together(b: Bench) -> None:
    b.limit("default", 2)
    rate(b, 3)
    b.enqueue(*(draft() for _ in range(9)))
    first = b.claim(10)
    assert len(first) == 2
    for job in first:
        b.succeed(job)
    (third,) = b.claim(10)
    b.succeed(third)
    assert b.claim(10) == [], "the rate"
    b.later(60)
    assert len(b.claim(10)) == 2, "the limit"


@pytest.mark.parametrize("losses", [1, 2])
@pytest.mark.parametrize("key", ["", "*"])
def test_jobs_that_have_lost_workers_obey(b: Bench, losses: int, key: str) -> None:
    add(b, "aaa")
    for number in range(losses):
        assert len(b.claim(10, rescue=True, alone=number == 2)) == 3
        b.later(100)
        assert len(b.reap()) == 3
        b.later(100)
        b.promote()
    rate(b, 1, group=key)
    found = [claim(b, 10, rescue=True, alone=losses == 2) for _ in range(3)]
    assert [len(one.jobs) for one in found] == [1, 0, 0]
    b.later(60)
    assert len(claim(b, 10, rescue=True, alone=losses == 2).jobs) == 1


def test_a_claim_whose_answer_was_lost_has_counted_once(b: Bench) -> None:
    rate(b, 2)
    b.enqueue(*(draft() for _ in range(5)))
    token = "0192f3a0-7c1e-4b3a-9d1f-2f6f5a1c0de1"
    assert len(claim(b, 1, token=token).jobs) == 1
    assert len(claim(b, 1, token=token, again=True).jobs) == 1
    assert len(b.claim(5)) == 1


def test_what_has_started_is_forgotten_when_no_rate_asks_for_it(b: Bench) -> None:
    rate(b, 5, 10.0)
    rate(b, 5, 100.0, group="*")
    for _ in range(30):
        add(b, "ab")
        b.later(10)
        b.claim(10)
    assert b.count("starts") <= 22


def test_a_high_rate_is_kept_in_few_rows_and_neither_exceeded_nor_wasted(b: Bench) -> None:
    rate(b, 1001, 10.0)
    add(b, ["a"] * 3500)
    starts: list[float] = []
    for _ in range(60):
        b.later(0.4973)
        for _ in range(2):
            starts += [b.now] * len(b.claim(40))
    assert len(starts) >= 2900
    for first, beyond in zip(starts, starts[1001:], strict=False):
        assert beyond - first >= 10.0 - 1e-6
    assert b.count("starts") <= 25
    assert b.query("select max(number) from {s}starts")[0][0] == 80


def test_two_claims_at_once_do_not_share_the_last_start(pg: Bench) -> None:
    rate(pg, 3)
    pg.enqueue(*(draft() for _ in range(9)))
    first = pg.session()
    assert len(first.leave_open(pg.claim_flow(2)).jobs) == 2
    second = Background(lambda: pg.claim(9))
    assert second.blocked
    first.commit()
    assert len(second.result()) == 1


# Fair shares


def test_small_keys_are_served_in_turn_beside_a_backlog(b: Bench) -> None:
    fair(b)
    add(b, ["big"] * 2000)
    add(b, [f"s{n}" for n in range(10) for _ in range(5)])
    seen: Counter[str | None] = Counter()
    for _ in range(11):
        seen.update(job.group for job in b.claim(5))
    assert seen == {"big": 5, **{f"s{n}": 5 for n in range(10)}}, "five rounds, each key once in each"


def test_one_at_a_time_goes_round(b: Bench) -> None:
    fair(b)
    add(b, "aaaabbbbcccc--")
    order = "".join(served(b.claim(1)) for _ in range(14))
    assert sorted(order[:4]) == sorted(order[4:8]) == list("-abc")
    assert order[:4] == order[4:8]
    assert sorted(order[8:]) == list("aabbcc")


def test_what_some_do_not_want_is_for_the_others(b: Bench) -> None:
    """As much as is asked for, if there is as much: few of one key, none of another's task, plenty of the last."""
    fair(b)
    add(b, ["a", "b", *("c" * 50)])
    add(b, ["x"] * 50, task="nobodys")
    assert served(b.claim(30)) == "ab" + "c" * 28


def test_within_a_key_priority_then_order(b: Bench) -> None:
    fair(b)
    low, high, mid = b.enqueue(draft(group="a", priority=-5), draft(group="a", priority=5), draft(group="a"))
    assert [b.claim(1)[0].id for _ in range(3)] == [high.id, mid.id, low.id]


@pytest.mark.parametrize("want", [1, 7])
def test_keys_whose_task_no_worker_knows_do_not_block(b: Bench, want: int) -> None:
    fair(b)
    add(b, [f"a{n:04}" for n in range(500)], task="nobodys")
    add(b, ["zz"] * 20)
    assert len(b.claim(want)) == want
    assert len(b.claim(want)) == want


def test_more_such_keys_than_one_claim_looks_at_are_passed_in_time(b: Bench, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(limits, "MAX_GROUPS", 10)
    monkeypatch.setattr(limits, "MAX_STEPS", 3)
    fair(b)
    add(b, [f"a{n:04}" for n in range(100)], task="nobodys")
    add(b, ["zz"] * 3)
    assert any(b.claim(1) for _ in range(10))


def test_thousands_of_keys_are_each_served_once_before_any_is_served_twice(b: Bench) -> None:
    fair(b)
    add(b, [f"k{n:04}" for n in range(1500) for _ in range(2)])
    seen: Counter[str | None] = Counter()
    for _ in range(15):
        seen.update(job.group for job in b.claim(100))
    assert len(seen) == 1500
    assert set(seen.values()) == {1}


def test_keys_at_their_rate_are_passed_over_however_many(b: Bench) -> None:
    fair(b)
    rate(b, 1, group="*")
    names = [f"k{n:03}" for n in range(450)]
    add(b, names * 2)
    for _ in range(9):
        assert len(b.claim(50)) == 50
    assert claim(b, 50).jobs == []
    add(b, ["zz", "aa"])
    assert sorted(job.group or "" for job in b.claim(50)) == ["aa", "zz"]


def test_a_queue_of_keys_is_served_beside_one_that_is_never_empty(b: Bench) -> None:
    """In the order asked for, which workers change each time: neither starves the other."""
    fair(b, queue="shared")
    add(b, "ab", queue="shared")
    add(b, ["x"] * 50, queue="bulk")
    first = b.claim(2, ("shared", "bulk"))
    assert [job.queue for job in first] == ["shared", "shared"]
    assert {job.queue for job in b.claim(5, ("bulk", "shared"))} == {"bulk"}


def test_fairness_can_be_ended(b: Bench) -> None:
    fair(b)
    add(b, "aaab")
    assert served(b.claim(2)) == "ab"
    fair(b, False)
    assert b.count("queues", "limited") == 0
    assert served(b.claim(2)) == "aa"


def test_a_paused_queue_of_keys_gives_nothing(b: Bench) -> None:
    fair(b)
    add(b, "ab")
    b.run(control.set_queue, "default", paused=True)
    assert b.claim(5) == []
    b.run(control.set_queue, "default", paused=False)
    assert served(b.claim(5)) == "ab"


def test_explain_tells_of_a_rate_that_is_used_up(b: Bench) -> None:
    rate(b, 1, 3600.0)
    rate(b, 0, 3600.0, group="*")
    rate(b, 9, 3600.0, group="free")
    b.now = b.run(_clock)
    first = b.take(group="free")
    id = b.add(group="a")
    said = b.run(inspect.explain, id)
    assert said[0].startswith("queue default may start 1 jobs in 3600 s, and has; there is room in 3")
    assert said[1] == "queue default may start no jobs of group a"
    assert len(said) == 2
    assert b.state(first.id) == "running"


# What it costs


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


def test_queues_without_limits_do_not_pay(b: Bench) -> None:
    rate(b, 5, queue="rated")
    fair(b, queue="shared")
    add(b, "aa", queue="plain")
    names: list[str] = []
    found = b.run(lambda: noted(b.claim_flow(5, ("plain",)), names))
    assert (len(found.jobs), names) == (2, ["claim/claim", "claim/queue_flags"])
    add(b, "aa", queue="plain")
    b.run(lambda: noted(b.claim_flow(2, ("plain", "rated", "shared"), check_flags=False), names))
    assert names == ["claim/claim", "claim/queue_flags", "claim/claim"], "nor those that come first and have enough"


def test_the_plans_on_sqlite_go_by_the_index_of_keys() -> None:
    with bench(MEMORY, "relet") as b:
        assert isinstance(b.store, SQLiteStore)
        connection = b.store._open_writer()

        def plan(name: str, **params: Any) -> list[str]:
            (text,) = texts(name, "sqlite", "named", b.store.quoted)
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


def test_jobs_without_a_key_are_found_behind_thousands_of_a_key_that_may_not_start(world: World) -> None:
    """Those that were there before keys mattered, and those that came later."""
    early = world.add(queue="q")
    world.run(control.set_queue, "q", rate=("full", 0, 1.0))
    while world.run(control.backfill_group, "q", limit=1):
        pass
    world.run(enqueue.enqueue, [world.draft(queue="q", group="full", priority=9) for _ in range(2500)])
    late = world.add(queue="q")
    assert set(world.claim(queue="q")) == {early, late}
    job = world.get(late)
    assert job is not None
    assert job.group is None
