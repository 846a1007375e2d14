"""`--processes N`: worker processes under a supervisor that replaces them, and stops them together."""

from __future__ import annotations

import os
import signal

import pytest

from tests.worker.programs import Program, Shop, gone, lives, until

SOON = 8.0


def pair(shop: Shop, *options: str) -> Program:
    """Two processes with a slot each, both at work."""
    program = shop.run("worker", "shop:app", "--processes", "2", "-c", "1", "--poll-interval", "0.1", *options)
    shop.noted("WorkerStarted", times=2)
    return program


def runners(shop: Shop) -> set[int]:
    return {int(line[-1]) for line in shop.notes("start")}


def test_two_processes_share_the_work_and_stop_together(shop: Shop) -> None:
    program = pair(shop)
    jobs = shop.enqueue("hold", number=2)
    shop.started(*jobs)
    assert runners(shop) == set(program.children)
    program.send(signal.SIGTERM).says("Stopping: ", times=2)
    assert program.runs
    shop.go()
    assert program.code() == 0
    gone(*program.children)
    assert {(shop.job(job).state, shop.job(job).attempt) for job in jobs} == {("succeeded", 1)}


def test_a_process_that_dies_is_replaced_and_later_if_it_dies_again(shop: Shop) -> None:
    program = pair(shop, "--lease", "0.5")
    jobs = shop.enqueue("hold", number=2)
    shop.started(*jobs)
    lost = next(line[1] for line in shop.notes("start") if int(line[-1]) == program.children[0])
    os.kill(program.children[0], signal.SIGKILL)
    program.says("exited with code -9; starting another in 0.5 s")
    shop.noted("start", lost, times=2)
    assert runners(shop) == set(program.children)
    os.kill(program.children[2], signal.SIGKILL)
    program.says("exited with code -9; starting another in 1 s")
    shop.noted("start", lost, times=3)
    assert len(program.children) == 4
    shop.go()
    shop.over("succeeded")
    assert program.send(signal.SIGTERM).code(SOON) == 0


@pytest.mark.long
def test_a_process_that_waits_to_be_replaced_does_not_hold_up_the_exit(shop: Shop) -> None:
    program = pair(shop)
    for child in program.children:
        os.kill(child, signal.SIGKILL)
    program.says("starting another in", times=2)
    assert program.send(signal.SIGTERM).code(SOON) == 0


def test_a_signal_that_comes_before_the_processes_are_ready_stops_them(shop: Shop) -> None:
    program = shop.run("worker", "shop:app", "--processes", "2")
    program.says("Started worker process 2 ")
    assert program.send(signal.SIGTERM).code(SOON) == 0
    gone(*program.children)


def test_processes_whose_supervisor_was_killed_drain(shop: Shop) -> None:
    program = pair(shop)
    jobs = shop.enqueue("hold", number=2)
    shop.started(*jobs)
    os.kill(program.pid, signal.SIGKILL)
    program.says("The supervisor exited: stopping", times=2)
    late = shop.one("quick")
    assert all(map(lives, program.children))
    shop.go()
    gone(*program.children)
    assert {(shop.job(job).state, shop.job(job).attempt) for job in jobs} == {("succeeded", 1)}
    assert shop.job(late).state == "queued"


@pytest.mark.long
def test_a_ctrl_c_at_the_terminal_reaches_each_process_once(shop: Shop) -> None:
    program = pair(shop)
    jobs = [shop.one("hold"), shop.one("hold_in_process")]
    shop.started(*jobs)
    os.killpg(program.pid, signal.SIGINT)  # what a terminal does
    program.says("waiting up to 5 min", times=2)
    shop.go()
    assert program.code() == 0
    assert program.log.count("SIGTERM (1)") == 2
    assert "SIGTERM (2)" not in program.log
    assert {shop.job(job).state for job in jobs} == {"succeeded"}


@pytest.mark.parametrize("signals", [2, 3])
def test_further_signals_are_passed_on(shop: Shop, signals: int) -> None:
    program = pair(shop)
    jobs = [shop.one("stuck"), shop.one("block_the_loop")]
    shop.started(*jobs)
    program.send(signal.SIGTERM).says("waiting up to 5 min", times=2)
    program.send(signal.SIGTERM).says("SIGTERM (2)", times=3)  # twice from them
    if signals == 3:
        program.send(signal.SIGTERM)
    assert program.code(SOON) == (0 if signals == 2 else 128 + signal.SIGTERM)
    gone(*program.children)
    if signals == 2:
        assert {(shop.job(job).state, shop.job(job).attempt) for job in jobs} == {("queued", 0)}


@pytest.mark.long
def test_a_process_that_has_done_its_share_is_replaced_and_nothing_is_lost(shop: Shop) -> None:
    jobs = shop.enqueue("quick", 0.01, number=100)
    options = ("--max-jobs", "20", "--processes", "2", "-c", "4", "--poll-interval", "0.1")
    program = shop.run("worker", "shop:app", *options)
    shop.over("succeeded")
    program.says("starting another in 0 s")
    assert len(runners(shop)) > 2
    assert sorted(line[1] for line in shop.notes("start")) == sorted(job.id for job in jobs)
    assert program.send(signal.SIGTERM).code(SOON) == 0


@pytest.mark.long
def test_a_process_that_has_grown_too_large_is_replaced_and_nothing_is_lost(shop: Shop) -> None:
    program = shop.run("worker", "shop:app", "--max-rss", "200", "--poll-interval", "0.1")
    job = shop.one("hoard", 200)
    shop.started(job)
    program.says("max_rss is reached").says("starting another in 0 s")
    after = shop.one("quick")
    shop.over("succeeded")
    first, second = shop.notes("start", job.id), shop.notes("start", after.id)
    assert (len(first), len(second)) == (1, 1)
    assert first[0][-1] != second[0][-1]
    assert program.send(signal.SIGTERM).code(SOON) == 0


@pytest.mark.parametrize("options", [("-q", "default=0"), ("-q", "not a name"), ("--tenant", "acme=0")])
def test_options_that_would_end_each_process_at_once_are_refused_by_the_supervisor(
    shop: Shop, options: tuple[str, ...]
) -> None:
    program = shop.run("worker", "shop:app", "--processes", "2", *options)
    until(lambda: not program.runs or program.children, lambda: program.log)
    assert program.children == []
    assert program.code() in (1, 2)
    assert len(program.lines) == 1
