"""`relet jobs APP cancel ...`: to jobs that are named, to all of a filter, and stopped in the middle."""

from __future__ import annotations

import json
import re
import signal
import sys

import pytest

from relet import new_id
from tests import forks
from tests.harness import harness_of
from tests.plugin.command_line import CommandLine
from tests.ptys import OnTerminal
from tests.shops import CliShop


@pytest.mark.long
def test_jobs_that_are_named_are_steered(typed: CommandLine, any_shop: CliShop) -> None:
    shop = any_shop
    one, two, three, later = *shop.many(3), *shop.many(1, delay=3600)
    jobs = ("jobs", "shop:app")
    assert typed(shop.folder, *jobs, "pause", one.id, two.id) == (0, f"{one.id}  paused\n{two.id}  paused\n")
    assert typed(shop.folder, *jobs, "resume", one.id)[0] == 0
    assert shop.state(one) in ("pending", "queued")
    assert typed(shop.folder, *jobs, "cancel", two.id) == (0, f"{two.id}  cancelled\n")
    assert typed(shop.folder, *jobs, "run-now", later.id)[0] == 0
    assert typed(shop.folder, *jobs, "complete", one.id, "--result", '"by hand"')[1] == f"{one.id}  succeeded\n"
    assert shop.client.result(one) == "by hand"
    assert typed(shop.folder, *jobs, "delete", three.id) == (0, f"{three.id}  deleted\n")
    assert shop.client.get(three) is None


def test_jobs_are_rerun_and_found_by_their_tags(typed: CommandLine, any_shop: CliShop) -> None:
    shop = any_shop
    enqueue = ("enqueue", "shop:app", "charge", "--arg", "account=acct-7", "--arg", "cents=5", "--tag", "vip")
    job = typed(shop.folder, *enqueue)[1].strip()
    code, printed = typed(shop.folder, "jobs", "shop:app", "rerun", job[-12:], "--arg", "cents=9")
    assert code == 0
    new = shop.client.get(printed.strip())
    assert new is not None
    assert (new.rerun_of, new.payload["cents"], new.tags) == (job, 9, ("vip",))
    found = typed(shop.folder, "jobs", "shop:app", "--tag", "vip", "--payload", '{"cents": 9}')[1]
    assert new.id in found
    assert job not in found
    assert job in typed(shop.folder, "jobs", "shop:app", "show", new.id)[1]


def test_a_running_job_is_asked(typed: CommandLine, shop: CliShop) -> None:
    (job,) = shop.many(1)
    harness_of(shop.app).claim(1, queues=("billing",))
    assert typed(shop.folder, "jobs", "shop:app", "cancel", job.id) == (0, f"{job.id}  running (cancel asked)\n")


def test_one_that_is_refused_does_not_keep_the_others_from_it(typed: CommandLine, shop: CliShop) -> None:
    one, two = shop.many(2)
    shop.client.cancel(one)
    unknown = new_id()
    code, printed = typed(shop.folder, "jobs", "shop:app", "pause", one.id, unknown, two.id)
    assert code == 1
    assert set(printed.splitlines()) == {
        f"{two.id}  paused",
        f"relet: cannot pause job {one.id}: it is cancelled",
        f"relet: no such job: {unknown}",
    }
    code, printed = typed(shop.folder, "jobs", "shop:app", "resume", two.id, "--json")
    assert (code, json.loads(printed)["refused"], json.loads(printed)["done"][0]["id"]) == (0, [], two.id)
    assert json.loads(printed)["done"][0]["state"] in ("pending", "queued"), "a state, as programs know it"


@pytest.mark.long
def test_ids_may_be_piped_in(typed: CommandLine, shop: CliShop) -> None:
    jobs = shop.many(3)
    (shop.folder / "piped").write_text("\n".join(job.id for job in jobs))
    assert typed(shop.folder, "jobs", "shop:app", "cancel", "-")[0] == 0
    assert {shop.state(job) for job in jobs} == {"cancelled"}


def test_nothing_is_done_if_one_of_the_ids_is_none(typed: CommandLine, shop: CliShop) -> None:
    (job,) = shop.many(1)
    assert "a job id is a UUIDv7" in typed.refusal(shop.folder, "jobs", "shop:app", "cancel", job.id, "nonsense")
    assert shop.state(job) == "queued"


@pytest.mark.long
def test_chains_can_be_meant(typed: CommandLine, shop: CliShop) -> None:
    (first,) = shop.many(1)
    shop.client.complete(first, continue_with=shop.sweep.draft())
    last = shop.client.chain(first).last
    code, printed = typed(shop.folder, "jobs", "shop:app", "chain", first.id)
    assert (code, len(printed.splitlines())) == (0, 3)
    assert typed(shop.folder, "jobs", "shop:app", "cancel", first.id, "--chain")[0] == 0
    assert shop.state(last) == "cancelled"
    assert typed(shop.folder, "jobs", "shop:app", "delete", "--chain", first.id)[0] == 0
    assert shop.client.count() == 0


def test_failed_jobs_are_resumed_in_bulk(typed: CommandLine, any_shop: CliShop) -> None:
    shop = any_shop
    shop.many(25)
    shop.failed(23)
    others = shop.sweep.enqueue()
    bulk = ("jobs", "shop:app", "resume", "--state", "failed", "--queue", "billing")
    code, printed = typed(shop.folder, *bulk)
    assert code == 1, "without a terminal there is no confirmation"
    assert re.match(
        r"resume 23 jobs \(state failed, queue billing\) in \S+\? Standard input is not a terminal: pass --yes", printed
    )
    assert shop.client.count(state="failed") == 23
    assert typed(shop.folder, *bulk, "--yes") == (0, "resume: 23 done, 0 refused\n")
    assert shop.client.count(state="failed") == 0
    again = json.loads(typed(shop.folder, *bulk, "--yes", "--json")[1])
    assert again == {"action": "resume", "matched": 0, "done": 0, "refused": 0}
    assert shop.state(others) == "queued"


def test_words_may_stand_behind_options(typed: CommandLine, shop: CliShop) -> None:
    shop.many(2)
    assert (
        typed(shop.folder, "jobs", "shop:app", "--queue", "billing", "--yes", "cancel")[1]
        == "cancel: 2 done, 0 refused\n"
    )
    assert "unrecognized arguments: --nosuch" in typed(shop.folder, "jobs", "shop:app", "--nosuch", "cancel")[1]


@pytest.mark.parametrize(
    ("verb", "left"),
    [("cancel", {"succeeded", "cancelled"}), ("pause", {"paused", "failed", "succeeded"}), ("delete", set())],
)
def test_without_a_state_a_bulk_verb_means_all_that_it_applies_to(
    typed: CommandLine, shop: CliShop, verb: str, left: set[str]
) -> None:
    (job,) = shop.many(1)
    shop.client.complete(job, "done")
    shop.many(1)
    shop.failed(1)
    shop.many(2)
    assert typed(shop.folder, "jobs", "shop:app", verb, "--all", "-y")[0] == 0
    assert {str(job.state) for job in shop.client.jobs().jobs} == left


@pytest.mark.parametrize(
    ("words", "printed"),
    [
        (("cancel",), "cancel needs job IDs, filters (--state, --queue, --task, ...) or --all."),
        (("complete",), "complete needs job IDs. List jobs: relet jobs shop:app"),
        (("complete", "--queue", "billing"), "complete needs job IDs. List jobs: relet jobs shop:app"),
        (("frobnicate",), "Unknown verb 'frobnicate': use a job ID or one of list, show, explain"),
        (("show",), "show needs one job ID. List jobs: relet jobs shop:app"),
        (("pause", "--all", "--result", "1"), "--result works only with complete, not with pause."),
        (("pause", "--all", "--chain"), "--chain works only with complete, cancel or delete, and with job IDs."),
        (("delete", "--all", "--dependents"), "--dependents works only with delete --chain."),
        (("signal",), "signal needs a job ID, a name and optionally JSON: signal ID approved"),
        (("wait",), "No job IDs. Give them as arguments, or - to read them from standard input."),
    ],
)
def test_a_verb_that_cannot_be_understood_is_explained(
    typed: CommandLine, still_shop: CliShop, words: tuple[str, ...], printed: str
) -> None:
    assert printed in typed.refusal(still_shop.folder, "jobs", "shop:app", *words, codes=(2,))


def test_ids_and_filters_do_not_go_together(typed: CommandLine, shop: CliShop) -> None:
    (job,) = shop.many(1)
    printed = typed.refusal(shop.folder, "jobs", "shop:app", "cancel", job.id, "--queue", "billing")
    assert "cancel takes either job IDs or filters, not both." in printed
    assert shop.state(job) == "queued"


@pytest.mark.long
def test_results_are_waited_for(typed: CommandLine, shop: CliShop) -> None:
    one, two = shop.many(2)
    shop.client.complete(one, "paid")
    code, printed = typed(shop.folder, "jobs", "shop:app", "wait", one.id)
    assert (code, printed.split()[-3:]) == (0, ["charge", "succeeded", '"paid"'])
    assert "is still queued after 0.01 s" in typed.refusal(
        shop.folder, "jobs", "shop:app", "wait", two.id, "--timeout", "0.01"
    )
    shop.client.cancel(two)
    assert typed(shop.folder, "jobs", "shop:app", "wait", one.id, two.id)[0] == 1


def test_a_signal_is_sent_once(typed: CommandLine, shop: CliShop) -> None:
    (job,) = shop.many(1)
    signal = ("jobs", "shop:app", "signal", job.id, "approved")
    assert typed(shop.folder, *signal, '{"by": "Ada"}') == (0, "Signal sent.\n")
    assert typed(shop.folder, *signal) == (1, 'Signal "approved" was sent before; the first value is kept.\n')


@pytest.mark.long
def test_the_question_is_answered_at_a_terminal(shop: CliShop) -> None:
    shop.many(5)
    arguments = ("jobs", "shop:app", "cancel", "--queue", "billing")
    with OnTerminal(shop.folder, *arguments) as terminal:
        terminal.shows("cancel 5 jobs (queue billing) in sqlite:", "[y/N]")
        terminal.press("n\n")
        assert terminal.code() == 1
        assert "Nothing was changed." in terminal.page
    assert shop.client.count(state="queued") == 5
    with OnTerminal(shop.folder, *arguments) as terminal:
        terminal.shows("[y/N]")
        terminal.press("y\n")
        assert terminal.code() == 0
        assert "cancel: 5 done, 0 refused" in terminal.page
    assert shop.client.count(state="cancelled") == 5


#: Sends itself Ctrl-C while a bulk action reports its progress.
INTERRUPTED = """
import os, signal, sys
from relet._cli import main, progress
bar = progress.bar
def interrupting(what, total):
    def advance(done):
        if done:
            os.kill(os.getpid(), signal.SIGINT)
    class Bar:
        def __enter__(self): return advance
        def __exit__(self, *why): return None
    return Bar()
progress.bar = interrupting
main(sys.argv[1:])
"""


@pytest.mark.long
def test_ctrl_c_in_the_middle_says_how_far_it_came(shop: CliShop) -> None:
    shop.many(3000)
    command = [sys.executable, "-c", INTERRUPTED, "jobs", "shop:app", "cancel", "--queue", "billing", "--yes"]
    ran = forks.run(command, cwd=shop.folder, timeout=60)
    assert ran.returncode == 128 + signal.SIGINT
    printed = re.fullmatch(r"relet: Stopped: (\d+) of 3000 done, 0 refused\.\n", ran.stderr)
    assert printed is not None, ran.stderr
    assert 0 < int(printed[1]) < 3000
    assert shop.client.count(state="cancelled") == int(printed[1])
