"""R3 and R4: workers survive the database, and an outage makes no job run twice."""

from __future__ import annotations

import time
from pathlib import Path

import pytest

from tests.servers import PrivateServer, Server
from tests.store.proxy import proxy_to
from tests.worker.programs import Program, Shop, a_shop, cpu_seconds

JOBS = 300
LEASE = 1.0
NOWHERE = "postgresql://postgres@127.0.0.1:1/postgres"
HOLDING = ("hold", "hold_without_asking", "hold_in_process_without_asking")  # to ask is to be told of the doubt


def assert_undisturbed(workers: list[Program], cpu: float) -> None:
    """They live, have said what is the matter without repeating themselves, and have not spun."""
    for worker in workers:
        assert worker.runs, worker.log
        away, back = worker.log.count("Lost connection to the database"), worker.log.count("Reached the database again")
        assert away == back
        assert 1 <= away <= 4, worker.log
        assert len([line for line in worker.lines if " succeeded in " not in line]) < 40, worker.log
        assert "Traceback" not in worker.log, worker.log
    assert cpu < 0.5 * len(workers), f"{cpu:.2f} cores were busy while there was no database"


def outage(server: PrivateServer, workers: list[Program], how: str, seconds: float) -> float:
    """Take the server away for so long; returns how many cores the workers kept busy meanwhile."""
    server.stop(how)
    for worker in workers:
        worker.says("Lost connection to the database")
    begin, used = time.monotonic(), sum(cpu_seconds(worker.pid) for worker in workers)
    time.sleep(seconds)
    busy = (sum(cpu_seconds(worker.pid) for worker in workers) - used) / (time.monotonic() - begin)
    server.start()
    return busy


@pytest.mark.parametrize("how", ["SIGINT", "SIGKILL"])
def test_a_restart_or_crash_of_the_database_under_load_loses_nothing(
    fragile_shop: Shop, fragile_server: PrivateServer, how: str
) -> None:
    shop = fragile_shop
    workers = [shop.start("-c", "4"), shop.start("-c", "4")]
    before = shop.enqueue("quick", 0.02, number=JOBS)
    shop.noted("start", times=JOBS // 10)
    busy = outage(fragile_server, workers, how, 1.0)
    assert shop.client.count(state="succeeded") < JOBS, "all was over before the outage"
    after = shop.enqueue("quick", number=10)
    shop.over("succeeded")
    shop.noted("StoreUp", times=2)
    assert {line[-1] for line in shop.notes("StoreDown")} == {line[-1] for line in shop.notes("StoreUp")}
    assert {line[-1] for line in shop.notes("StoreUp")} == {str(worker.pid) for worker in workers}
    # The leases were longer than the outage: no worker had a reason to start a job twice.
    assert sorted(line[1] for line in shop.notes("start")) == sorted(job.id for job in before + after)
    assert_undisturbed(workers, busy)


def test_an_outage_of_three_leases_makes_no_living_worker_lose_a_job(
    fragile_shop: Shop, fragile_server: PrivateServer
) -> None:
    shop = fragile_shop
    workers = [shop.start("-c", "4", "--lease", str(LEASE)) for _ in range(2)]
    jobs = [job for task in HOLDING for job in shop.enqueue(task, number=2)]
    shop.started(*jobs)
    # Longer than the gap of the pulse, too (3 s): an outage shorter than that is told by nothing but the leases.
    busy = outage(fragile_server, workers, "SIGINT", 3 * LEASE + 0.7)
    shop.noted("StoreUp", times=2)
    time.sleep(2.5)  # the grace is over, the reaper has come by, and there are slots for what it might have found
    other = shop.one("quick")
    shop.started(other)
    assert {(shop.job(job).state, shop.job(job).attempt) for job in jobs} == {("running", 1)}
    shop.go()
    shop.over("succeeded")
    assert sorted(line[1] for line in shop.notes("start")) == sorted(job.id for job in [*jobs, other])
    assert {(shop.job(job).attempt, shop.job(job).losses) for job in jobs} == {(1, 0)}
    assert not shop.notes("LeaseLost")
    assert_undisturbed(workers, busy)


def test_a_worker_that_alone_is_cut_off_loses_its_jobs(pg_server: Server, tmp_path: Path, schema: str) -> None:
    places = [tmp_path / "cut_off", tmp_path / "other"]
    for place in places:
        place.mkdir()
    try:
        with (
            proxy_to(pg_server.dsn) as proxy,
            a_shop(places[0], proxy.url, schema) as cut_off,
            a_shop(places[1], pg_server.dsn, schema) as other,
        ):
            first = cut_off.start("--lease", str(LEASE))
            jobs = [cut_off.one("hold"), cut_off.one("hold_in_thread")]
            cut_off.started(*jobs)
            second = other.start("--lease", str(LEASE))
            proxy.dsn = NOWHERE
            proxy.cut_all()
            other.started(*jobs)
            second.says("its worker is gone")
            proxy.dsn = pg_server.dsn
            for job in jobs:
                cut_off.noted("LeaseLost", job.id)
                cut_off.noted("stopped", job.id)
            cut_off.go()  # too late
            other.go()
            other.over("succeeded")
            assert {(other.job(job).attempt, other.job(job).losses) for job in jobs} == {(2, 1)}
            assert not cut_off.notes("end")
            assert first.runs
    finally:
        pg_server.drop_schema(schema)
