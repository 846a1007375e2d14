"""Workers, targets, failures and statistics of a store, bulk verbs, and the audit trail."""

from __future__ import annotations

import uuid
from datetime import UTC, datetime, timedelta
from typing import Any

import pytest
from msgspec.structs import replace

from relet import App, InvalidInput, Job, State
from relet._core.stats import BOUNDS, Histogram, step_for
from relet._core.worker import WorkerFacts
from relet._store.flows import inspect, search, stats, targets, worker_reports
from relet._store.flows.stats import Count
from relet._store.query import TRAITS
from relet._tasks.task import new_id
from relet.errors import InvalidTransition, JobNotFound
from tests.clocks import at
from tests.databases import Database
from tests.harness import harness_of
from tests.worker.working import over, run_sql, take, until, working

T0 = datetime(2026, 3, 1, 12, 0, tzinfo=UTC).timestamp()
HOUR = 3600.0


@pytest.fixture
def shop(app: App) -> App:
    @app.task(max_attempts=1)
    async def work(n: int = 0) -> int:
        if n < 0:
            raise ValueError(f"account {-n} has only {-n}.50 left")
        return n

    app._store().ready()
    return app


def work(app: App, n: int = 0, **options: Any) -> Job[Any]:
    return app.tasks["work"].using(**options).enqueue(n)


def sample(app: App, now: float | None = None) -> bool:
    """Count the jobs as a worker does once in a minute."""
    store = app._store()
    with at(store, now):
        if not store.run(stats.claim_sample):
            return False
        store.run(stats.save_sample, store.run(inspect.counted_queues))
    return True


# Pages and filters


def test_a_page_that_looks_at_few_jobs_says_where_to_go_on(shop: App) -> None:
    jobs = shop.client.enqueue_many(
        [shop.tasks["work"].using(queue="rare" if n == 0 else "many").draft(n) for n in range(50)]
    )
    rare = min(jobs, key=lambda job: job.queue == "many")
    seen: list[Any] = []
    cursor, pages = None, 0
    while True:
        page = shop.client.jobs(queue="rare", scan=10, cursor=cursor)
        seen, pages, cursor = seen + page.jobs, pages + 1, page.cursor
        if cursor is None:
            break
    assert [job.id for job in seen] == [rare.id]
    assert 5 <= pages <= 6
    assert shop.client.count(queue="rare") == 1


def test_pages_of_live_jobs_and_those_that_are_over_come_in_one_order_without_gaps(shop: App) -> None:
    jobs = shop.client.enqueue_many([shop.tasks["work"].draft(n) for n in range(40)])
    for job in jobs[::3]:
        shop.client.cancel(job)
    for scan in (None, 7, 1000):
        seen: list[str] = []
        cursor = None
        while True:
            page = shop.client.jobs(limit=6, cursor=cursor, scan=scan)
            seen += [job.id for job in page.jobs]
            cursor = page.cursor
            if cursor is None:
                break
        assert seen == sorted((job.id for job in jobs), reverse=True), scan


def test_jobs_are_found_by_worker_and_by_the_text_of_their_error(shop: App) -> None:
    good, bad = work(shop, 1), work(shop, -7)
    with working(shop):
        over(shop, good, bad)
    assert [job.id for job in shop.client.jobs(error="ACCOUNT 7").jobs] == [bad.id]
    assert shop.client.count(error="100%") == 0
    late = work(shop, 3)
    (claimed,) = take(shop, seconds=60)
    assert claimed.id == late.id
    assert [job.id for job in shop.client.jobs(worker="the-late-worker").jobs] == [late.id]
    assert [job.id for job in shop.client.jobs(worker="the-late-worker", state=["failed", "succeeded"]).jobs] == []


def test_a_time_restricts_and_looks_no_further_than_needed(shop: App) -> None:
    job = work(shop)
    now = datetime.now(UTC)
    assert shop.client.count(created_from=now - timedelta(minutes=5), created_to=now + timedelta(minutes=5)) == 1
    assert shop.client.jobs(created_from=now + timedelta(minutes=5)).jobs == []
    assert shop.client.jobs(created_to=now - timedelta(minutes=5)).jobs == []
    assert shop.client.jobs(created_to=now + timedelta(minutes=5)).jobs[0].id == job.id


# Targets, failures


def test_a_target_shows_its_holder_and_the_jobs_that_wait_for_it(shop: App) -> None:
    first, *rest = [work(shop, n, target="acct-7") for n in range(4)]
    other = work(shop, 9, target="acct-8")
    (_, _) = take(shop, seconds=60, want=2) if _promoted(shop) else (None, None)
    page = shop.client.targets(limit=1)
    assert [(info.target, info.waiting) for info in page.targets] == [("acct-7", 3)]
    assert page.targets[0].holder is not None
    assert page.targets[0].holder.id == first.id
    following = shop.client.targets(limit=1, cursor=page.cursor)
    assert [(info.target, info.holder.id if info.holder else None) for info in following.targets] == [
        ("acct-8", other.id)
    ]
    assert following.cursor is None
    view = shop.client.target("acct-7", limit=2)
    assert view.holder is not None
    assert (view.holder.id, [job.id for job in view.line], view.waiting) == (first.id, [job.id for job in rest[:2]], 3)
    free = shop.client.target("free")
    assert (free.holder, free.line, free.waiting) == (None, [], 0)


def test_a_long_line_is_counted_up_to_a_limit_and_says_so(shop: App, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(targets, "MAX_LINES", 2)
    monkeypatch.setattr(targets, "MAX_LINE", 3)
    monkeypatch.setattr(inspect, "MAX_POSITION", 3)
    long, short = ([work(shop, n, target=name) for n in range(number)] for name, number in (("a", 6), ("b", 3)))
    assert _promoted(shop)
    found = {one.target: (one.waiting, one.at_least) for one in shop.client.targets().targets}
    assert found == {"a": (2, True), "b": (2, False)}
    assert [one.target for one in shop.client.targets(limit=1, cursor="a").targets] == ["b"]
    views = [shop.client.target(name, limit=1) for name in ("a", "b")]
    assert [(view.waiting, view.at_least) for view in views] == [(3, True), (2, False)]
    assert shop.client.explain(long[-1])[1] == "3 or more in line before it"
    assert shop.client.explain(short[-1])[1] == "1 in line before it"


def _promoted(app: App) -> bool:
    from relet._store.flows.promote import promote

    app._store().run(promote)
    return True


def test_failures_that_differ_in_numbers_only_are_one_group(shop: App) -> None:
    jobs = [work(shop, -n) for n in range(1, 6)]
    with working(shop):
        over(shop, *jobs)
    (group,) = shop.client.failures()
    assert (group.task, group.number) == ("work", 5)
    assert group.error == "ValueError: account … has only … left"
    assert group.example in {job.id for job in jobs}
    assert group.first_at <= group.last_at
    assert shop.client.count(state="failed", error=group.search) == 5


def test_who_waits_for_a_job_is_seen(shop: App) -> None:
    first = work(shop)
    waiting = [work(shop, n, depends_on=[first]) for n in range(3)]
    assert {job.id for job in shop.client.dependents(first)} == {job.id for job in waiting}
    assert shop.client.dependents(waiting[0]) == []
    assert len(shop.client.dependents(first, limit=2)) == 2


# Workers


def test_a_worker_is_seen_while_it_works_and_gone_once_it_has_stopped(shop: App) -> None:
    with working(shop, concurrency=3, queues=["default", "mail"]) as worker:
        until(lambda: shop.client.workers())
        (seen,) = shop.client.workers()
        assert (seen.name, seen.slots, seen.queues, seen.tasks) == (worker.id, 3, ("default", "mail"), ("work",))
        assert (seen.lease, seen.lost, seen.stopping) == (1.0, False, False)
        assert seen.serves("mail", "work")
        assert not seen.serves("other", "work")
    assert shop.client.workers() == []


def test_a_worker_that_says_nothing_is_lost_and_forgotten_after_a_day(database: Database, shop: App) -> None:
    facts = WorkerFacts("w", "host", 1, None, 2, ("work",), 30.0, "1")
    shop._store().run(worker_reports.report, new_id(), facts, 1, False)
    assert [(one.lost, one.running) for one in shop.client.workers()] == [(False, 1)]
    ago = "seen_at - interval '20 seconds'" if database.is_postgres else "seen_at - 20"
    run_sql(database, shop, f"update {{t}}workers set seen_at = {ago}")
    assert [one.lost for one in shop.client.workers()] == [True]
    long_ago = "seen_at - interval '2 days'" if database.is_postgres else "seen_at - 172800"
    run_sql(database, shop, f"update {{t}}workers set seen_at = {long_ago}")
    shop.client.prune()
    assert shop.client.workers() == []


def test_explain_names_the_queue_or_task_that_no_worker_serves(shop: App) -> None:
    job = work(shop)
    assert "no worker is running" in shop.client.explain(job)[0]

    def there(queues: tuple[str, ...] | None, tasks: tuple[str, ...], running: int) -> str:
        facts = WorkerFacts("w", "host", 1, queues, 2, tasks, 30.0, "1")
        shop._store().run(worker_reports.report, new_id(), facts, running, False)
        return shop.client.explain(job)[0]

    assert "none of the 1 running workers is a worker that serves queue default" in there(("mail",), ("work",), 0)
    assert "none of the 1 running workers" in there(None, ("other",), 0)
    assert "waits for a free slot at one of 1 workers" in there(None, ("work",), 2)
    assert "worker w has a free slot" in there(None, ("work",), 1)


# Statistics


def test_a_report_whose_answer_was_lost_is_said_again_and_counted_once(shop: App) -> None:
    facts = WorkerFacts("w", "host", 1, None, 2, ("work",), 30.0, "1")
    first, second = new_id(), new_id()
    for id in (first, first, second, second):
        shop._store().run(worker_reports.report, id, facts, 1, False, [Count("mail", "succeeded", 2)])
    assert [one.counts for one in shop.client.totals()] == [{"succeeded": 4}]


def test_the_attempts_of_a_worker_are_counted(shop: App) -> None:
    jobs = [work(shop, n) for n in (1, 2, 3, -1)]
    with working(shop):
        over(shop, *jobs)
    (total,) = shop.client.totals()
    assert (total.queue, total.counts) == ("default", {"succeeded": 3, "failed": 1})
    assert total.waits.number == total.starts.number == total.runs.number == 4
    assert 0 <= total.runs.total < 4
    points = shop.client.stats(since=datetime.now(UTC) - timedelta(hours=1))
    assert sum(point.counts.get("succeeded", 0) for point in points) == 3
    assert {point.step for point in points} == {60.0}
    assert any("failed" in point.gauges for point in points), "jobs are counted as soon as a worker is there"
    assert [point.queue for point in points] == ["default"] * len(points), "all together are no queue of their own"


@pytest.mark.long
def test_a_lost_attempt_is_counted_by_the_worker_that_reaps_it(shop: App) -> None:
    job = work(shop, 5)
    assert take(shop, seconds=0.2)
    with working(shop):
        over(shop, job)
    (total,) = shop.client.totals()
    assert total.counts == {"lost": 1, "succeeded": 1}


def test_one_of_many_workers_counts_the_jobs_of_a_minute(shop: App) -> None:
    work(shop)
    store = shop._store()
    taken = [sample(shop, T0 + seconds) for seconds in (0, 59, 60)]
    assert taken == [True, False, True]
    with at(store, T0 + 120):
        points = store.run(stats.page, T0, T0 + 120).points
    assert [(point.at.timestamp(), point.gauges["queued"]) for point in points] == [(T0, 1), (T0 + 60, 1)]


def test_a_count_that_took_long_is_enough_for_longer(shop: App) -> None:
    work(shop)
    store = shop._store()
    taken = []
    for minute in range(12):
        with at(store, T0 + 60 * minute):
            claimed = store.run(stats.claim_sample)
            if claimed is not None:
                seconds = {0: 2.5, 3: 0.4, 4: 600.0}.get(minute, 0.0)
                store.run(stats.save_sample, store.run(inspect.counted_queues), claimed, seconds)
                taken.append(minute)
    assert taken == [0, 3, 4], "three minutes for three seconds, and never more than nine"
    with at(store, T0 + 60 * 13):
        assert store.run(stats.claim_sample) == T0 + 60 * 13


def test_few_jobs_are_counted_when_they_are_looked_at(shop: App, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(inspect, "MAX_COUNTED", 5)
    for _ in range(5):
        work(shop)
    sample(shop)
    shop.client.cancel(shop.client.jobs(limit=1).jobs[0])
    (info,) = shop.client.queues()
    assert (info.queued, info.counted_at, info.at_least) == (4, None, False)


def test_where_there_are_too_many_jobs_to_count_each_time_the_last_count_is_told_with_its_moment(
    shop: App, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(inspect, "MAX_COUNTED", 5)
    for number in range(10):
        work(shop, queue="mail", delay=600 if number < 3 else None)
    work(shop, queue="old")
    shop.client.pause_queue("mail")
    begun = datetime.now(UTC)
    sample(shop)
    for _ in range(4):
        work(shop, queue="mail")
    shop.client.limit_queue("idle", max_running=1)
    work(shop, queue="new")
    seen = {info.queue: info for info in shop.client.queues()}
    mail, new = seen["mail"], seen["new"]
    assert (mail.pending, mail.queued, mail.paused, mail.at_least) == (3, 7, True, False)
    assert mail.counted_at is not None
    assert abs((mail.counted_at - begun).total_seconds()) < 60
    assert (new.queued, new.counted_at, new.at_least) == (1, None, True), "it was not there when they were counted"
    assert (seen["old"].queued, seen["idle"].max_running) == (1, 1)
    sample(shop, (datetime.now(UTC) + timedelta(seconds=60)).timestamp())
    assert {info.queue: info.queued for info in shop.client.queues()} == {"mail": 11, "old": 1, "new": 1, "idle": 0}


def test_numbers_that_no_worker_has_counted_lately_are_said_to_be_too_small(
    shop: App, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(inspect, "MAX_COUNTED", 5)
    work(shop, queue="old")
    sample(shop, (datetime.now(UTC) - timedelta(days=1)).timestamp())
    for _ in range(10):
        work(shop, queue="mail")
    mail, old = shop.client.queues()
    assert (mail.queue, mail.queued, mail.counted_at, mail.at_least) == ("mail", 6, None, True)
    assert (old.queue, old.queued, old.at_least) == ("old", 0, True), "its name comes from an index"


def test_counting_all_jobs_takes_no_lock_that_writers_wait_for(shop: App) -> None:
    """A sample is taken, counted and kept in three steps, and only the first and the last write."""
    assert TRAITS[inspect.counted_queues].read_only
    work(shop)
    assert shop._store().run(stats.claim_sample)
    found = shop._store().run(inspect.counted_queues)
    work(shop, queue="mail")
    shop._store().run(stats.save_sample, found)


def test_history_gets_coarser_with_age_and_loses_nothing_of_its_sums(
    shop: App, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(stats, "MAX_ROLLED_UP", 37)
    store = shop._store()
    for minute in range(120):
        counts = [Count("q", "succeeded", 2), Count("q", "waits", 1, 3), Count("q", "gauge.queued", minute, peak=True)]
        with at(store, T0 + 60 * minute):
            store.run(stats.add, counts)
    assert sum(point.counts["succeeded"] for point in store.run(stats.totals).points) == 240

    def steps(now: float, step: int) -> list[tuple[float, int, float]]:
        with at(store, now):
            while store.run(stats.roll_up):
                pass
            points = store.run(stats.page, T0, now, step=step).points
            together = store.run(stats.stats, T0, now, step=step, queues=["*"])
            assert store.run(stats.stats, T0, now, step=step, queues=["q", "none"]) == points
            some = store.run(stats.stats, T0, now, step=step, queues=["q"], only="succeeded")
            assert [one.counts for one in some] == [one.counts for one in points]
        assert [replace(point, queue="q") for point in together] == points
        return [(point.at.timestamp() - T0, point.counts["succeeded"], point.gauges["queued"]) for point in points]

    assert len(steps(T0 + 2 * HOUR, 60)) == 120
    assert steps(T0 + 2 * HOUR, 600)[0] == (0, 20, 9), "finer steps are summed up, peaks are not"
    after_a_day = steps(T0 + 24 * HOUR, 600)
    assert (len(after_a_day), after_a_day[11]) == (12, (6600, 20, 119))
    assert steps(T0 + 24 * HOUR, 60) == []
    assert steps(T0 + 5 * 24 * HOUR, 3600) == [(0, 120, 59), (3600, 120, 119)]
    assert steps(T0 + 100 * 24 * HOUR, 21600) == [(0, 240, 119)]
    assert steps(T0 + 500 * 24 * HOUR, 21600) == []
    (total,) = store.run(stats.totals).points
    assert (total.counts["succeeded"], total.waits.number) == (240, 120)


def test_moments_of_a_queue_are_found_in_any_period_and_after_gaps(shop: App) -> None:
    store = shop._store()
    for minute in (0, 1, 7, 55, 170):
        with at(store, T0 + 60 * minute):
            store.run(stats.add, [Count(queue, "succeeded", 1) for queue in ("q", "r")])
    for since, end in ((T0, T0 + 60), (T0 + 60, T0 + 480), (T0 + 120, T0 + 420), (T0 - HOUR, T0 + HOUR)):
        with at(store, T0 + 3 * HOUR):
            every = store.run(stats.page, since, end, step=60).points
            some = store.run(stats.stats, since, end, step=60, queues=["r"])
        assert some == [point for point in every if point.queue == "r"]
    with at(store, T0 + 3 * HOUR):
        recent = store.run(stats.recent_counts, ["q", "r", "none"], "succeeded", T0, 300)
    expected = {T0: 2, T0 + 300: 1, T0 + 3300: 1, T0 + 10200: 1}
    assert recent == {"q": expected, "r": expected}


def test_lists_of_failed_and_running_jobs_are_the_same_however_many_there_are(
    shop: App, monkeypatch: pytest.MonkeyPatch
) -> None:
    jobs = [work(shop, n) for n in range(6)]
    harness = harness_of(shop)
    for claimed in harness.claim(4)[:3]:
        assert harness.fail(claimed) == "failed"
    for limit in (search.MAX_RARE, 2):
        monkeypatch.setattr(search, "MAX_RARE", limit)
        for state, number in (("failed", 3), ("running", 1)):
            page = shop.client.jobs(state=state, limit=2)
            rest = shop.client.jobs(state=state, limit=2, cursor=page.cursor).jobs if page.cursor else []
            found = [job.id for job in (*page.jobs, *rest)]
            assert found == sorted(found, reverse=True)
            assert len(found) == number
            assert set(found) <= {job.id for job in jobs}
            assert shop.client.count(state=state) == number
            assert shop.client.count(state=state, limit=1) == 1
            assert len(shop.client.jobs(state=state, scan=1000).jobs) == number


def test_all_queues_together_are_counted_beside_them(shop: App) -> None:
    store = shop._store()
    shop.client.limit_queue(None, max_running=5)  # which makes it no queue
    for queue in ("mail", "billing"):
        work(shop, queue=queue)
        with at(store, T0):
            store.run(stats.add, [Count(queue, "succeeded", 2), Count(queue, "runs", 2, 3)])
    assert sample(shop, T0)
    with at(store, T0):
        (point,) = store.run(stats.stats, T0, T0 + 60, queues=["*"])
    assert (point.queue, point.counts, point.runs.number, point.gauges["queued"]) == ("*", {"succeeded": 4}, 4, 2)
    assert [one.queue for one in store.run(stats.totals).points] == ["billing", "mail"]
    with at(store, T0):
        found = store.run(stats.page, T0, T0 + 60, only="succeeded").points
    assert [(one.queue, one.counts, one.gauges) for one in found] == [
        (q, {"succeeded": 2}, {}) for q in ("billing", "mail")
    ]


def test_statistics_of_many_queues_are_read_page_by_page(shop: App, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(stats, "MAX_READ", 120)
    monkeypatch.setattr(stats, "MAX_TOTALS", 2)
    begin = datetime.now(UTC) - timedelta(hours=1)
    names = [f"q{number}" for number in range(5)]
    for queue in names:
        shop._store().run(stats.add, [Count(queue, "succeeded", 2), Count(queue, "waits", 1, 3)])
    shop._store().run(stats.add, [Count("gauged", "gauge.queued", 3, peak=True)])
    first = shop.client._stats_page(since=begin, step=60)
    assert 0 < len(first.points) < 6, "a page ends after so many steps of queues"
    assert first.cursor == first.points[-1].queue
    assert [point.queue for point in shop.client.stats(since=begin, step=60)] == ["gauged", *names]
    assert [point.queue for point in shop.client.stats(since=begin, only="succeeded")] == names
    assert [point.queue for point in shop.client.totals()] == names, "gauges have no totals"
    points, together = shop._store().run(stats.exported, 5)
    assert ([point.waits.number for point in points], together) == ([1] * 5, None)
    points, together = shop._store().run(stats.exported, 4)
    assert [(point.queue, point.counts, point.waits.number) for point in points] == [
        (queue, {"succeeded": 2}, 0) for queue in names
    ]
    assert together is not None
    assert (together.queue, together.waits.number) == ("*", 5)


def test_a_step_is_chosen_that_is_still_kept_and_not_too_short() -> None:
    now = T0
    assert step_for(now - HOUR, now, now) == 60
    assert step_for(now - 24 * HOUR, now, now) == 600
    assert step_for(now - 7 * 24 * HOUR, now, now) == 3600
    assert step_for(now - 30 * 24 * HOUR, now, now) == 21600
    assert step_for(now - 500 * 24 * HOUR, now, now) == 21600


def test_quantiles_come_from_the_classes() -> None:
    counts = [0] * (len(BOUNDS) + 1)
    assert Histogram().quantile(0.5) is None
    counts[BOUNDS.index(0.1)] = 100
    histogram = Histogram(tuple(counts), 8.0)
    assert histogram.quantile(0.5) == pytest.approx(0.075)
    assert histogram.quantile(1.0) == pytest.approx(0.1)
    counts[-1] = 1
    assert Histogram(tuple(counts)).quantile(1.0) == BOUNDS[-1]
    assert (histogram + histogram).number == 200


# In bulk


def test_a_bulk_verb_applies_to_all_jobs_that_match_and_to_no_other(shop: App) -> None:
    jobs = shop.client.enqueue_many([shop.tasks["work"].using(queue="mail").draft(n) for n in range(250)])
    spared = work(shop, queue="billing")
    steps: list[int] = []
    done = shop.client.bulk("pause", queue="mail", on_step=lambda so_far: steps.append(so_far.done))
    assert (done.done, done.refused, steps) == (250, 0, [50, 100, 150, 200, 250])
    assert shop.client.count(state="paused") == 250
    assert shop.client.bulk("resume", state="paused", limit=30).done == 30
    assert shop.client.bulk("cancel", queue="mail", state="paused").done == 220
    assert shop.client.bulk("delete", queue="mail").done == 250
    assert [job.id for job in shop.client.jobs().jobs] == [spared.id]
    assert shop.client.get(jobs[0]) is None


def test_a_bulk_verb_leaves_out_jobs_whose_state_no_longer_allows_it(shop: App) -> None:
    late, due = work(shop, delay=60), [work(shop, depends_on=[work(shop)]) for _ in range(2)]
    assert due
    done = shop.client.bulk("run_now", state="pending")
    assert (done.done, done.refused) == (1, 2), "two wait for others, not for their time"
    assert shop.client.explain(late) == ["it is due: maintenance will queue it shortly"]


def test_bulk_wants_to_know_which_jobs(shop: App) -> None:
    with pytest.raises(InvalidInput, match="bulk needs at least one filter"):
        shop.client.bulk("delete")
    with pytest.raises(InvalidInput, match="verb must be one of"):
        shop.client.bulk("explode", queue="mail")  # type: ignore[arg-type]


# The audit trail


def test_changes_by_a_named_actor_are_recorded_with_the_name(shop: App) -> None:
    ada = shop.client.acting_as("ada")
    job = ada.enqueue(shop.tasks["work"].draft(1))
    ada.pause(job)
    shop.client.resume(job)
    ada.cancel(job)
    ada.pause_queue("mail")
    ada.limit_queue("mail", max_running=3)
    ada.bulk("delete", state="cancelled")
    entries = ada.audit().entries
    assert [(one.who, one.what, one.subject) for one in entries[1:]] == [
        ("ada", "limit_queue", "mail"),
        ("ada", "pause_queue", "mail"),
        ("ada", "cancel", job.id),
        ("ada", "pause", job.id),
        ("ada", "enqueue", job.id),
    ]
    assert entries[0].what == "bulk delete"
    assert entries[0].detail == {"filter": {"state": "cancelled"}, "jobs": 1}
    assert entries[1].detail == {"max_running": 3}
    page = ada.audit(limit=2)
    assert [one.id for one in ada.audit(limit=2, cursor=page.cursor).entries] == [one.id for one in entries[2:4]]
    ada.prune(keep_finished=5, keep_failed=6)
    assert [(one.what, one.detail) for one in ada.audit(limit=1).entries] == [
        ("prune", {"keep_finished": 5, "keep_failed": 6})
    ]


def test_a_schema_that_is_made_in_somebodys_name_begins_with_a_note_of_it(app: App) -> None:
    deploy = app.client.tenant("acme").acting_as("deploy")
    applied = deploy.migrate()
    assert deploy.migrate() == []
    assert [(one.who, one.what, one.detail) for one in deploy.audit().entries] == [
        ("deploy", "migrate", {"versions": applied})
    ]


def test_changes_that_were_refused_are_not_recorded(shop: App) -> None:
    ada = shop.client.acting_as("ada")
    job = work(shop)
    with pytest.raises(InvalidTransition, match="resume"):
        ada.resume(job)
    for verb in (ada.cancel, ada.delete):
        with pytest.raises(JobNotFound, match="no such job"):
            verb(str(uuid.UUID(job.id[:-4] + "0000")))
    assert ada.audit().entries == []


def test_schedules_are_changed_in_somebodys_name_as_well(shop: App) -> None:
    ada = shop.client.acting_as("ada")
    ada.schedules.put("nightly", shop.tasks["work"].draft(1), "0 3 * * *")
    ada.schedules.pause("nightly")
    assert [(one.what, one.subject) for one in ada.audit().entries] == [
        ("pause_schedule", "nightly"),
        ("put_schedule", "nightly"),
    ]


def test_a_lease_that_was_renewed_says_when(shop: App) -> None:
    done: list[Job[Any] | None] = []

    @shop.task(max_attempts=2)
    async def slow() -> None:
        import asyncio

        job = shop.client.jobs(state="running").jobs[0]
        while job.renewed_at is None:
            await asyncio.sleep(0.02)
            job = shop.client.jobs(state="running").jobs[0]
        done.append(job)
        raise ValueError("once")

    job = slow.enqueue()
    with working(shop, lease=0.6):
        until(lambda: done)
        until(lambda: shop.client.attempts(job)[0].outcome == "retried")
    (running,) = done[:1]
    assert running is not None
    assert running.renewed_at is not None
    assert running.started_at is not None
    assert running.expires_at is not None
    assert running.started_at < running.renewed_at < running.expires_at
    (first, *_) = shop.client.attempts(job)
    assert first.renewed_at is not None
    assert first.expires_at is not None
    assert first.expires_at > first.renewed_at
    assert shop.client.get(job).state in State  # type: ignore[union-attr]
