"""Daily commands of an operator: the ends of ids, retry, probes of a worker, and JSON with values."""

from __future__ import annotations

import json
import socket
import uuid
from datetime import timedelta

import pytest

from relet._cli import output
from relet._core.worker import WorkerFacts
from relet._store.flows import worker_reports
from tests.plugin.command_line import CommandLine
from tests.shops import CliShop


def report(shop: CliShop, name: str, *, stopping: bool = False) -> None:
    facts = WorkerFacts(name, socket.gethostname(), 7, None, 4, ("charge",), 30.0, "1.0")
    shop.app._store().run(worker_reports.report, str(uuid.uuid4()), facts, 1, stopping)


@pytest.mark.long
def test_the_end_of_an_id_will_do(typed: CommandLine, shop: CliShop) -> None:
    (job,) = shop.many(1)
    for words in (("show", job.id[-8:]), (job.id[-8:],)):
        code, printed = typed(shop.folder, "jobs", "shop:app", *words, "--json")
        assert code == 0, printed
        assert json.loads(printed)["job"]["id"] == job.id
    assert typed(shop.folder, "jobs", "shop:app", "cancel", job.id[-6:])[0] == 0
    assert shop.state(job) == "cancelled"
    code, printed = typed(shop.folder, "explain", "shop:app", job.id[-8:])
    assert code == 0


def test_an_end_that_no_id_or_two_ids_have_is_refused(typed: CommandLine, shop: CliShop) -> None:
    end = "c0ffee"
    ids = [f"0192f3a0-7c1e-7b3a-9d1f-{n}00000{end}" for n in (1, 2)]
    for id in ids:
        shop.charge.using(id=id).enqueue("acct")
    code, printed = typed(shop.folder, "jobs", "shop:app", "show", end)
    assert code == 1
    assert f"Two jobs end in {end}" in printed
    code, printed = typed(shop.folder, "jobs", "shop:app", "show", "beef")
    assert code == 1
    assert "ends in beef" in printed


def test_retry_resumes_a_failed_job(typed: CommandLine, shop: CliShop) -> None:
    (job,) = shop.many(1, max_attempts=1)
    shop.failed(1)
    assert shop.state(job) == "failed"
    assert typed(shop.folder, "jobs", "shop:app", "retry", job.id)[0] == 0
    assert shop.state(job) in ("pending", "queued")


def test_json_has_payloads_and_results_as_values(typed: CommandLine, shop: CliShop) -> None:
    (job,) = shop.many(1)
    shop.client.complete(job, "paid")
    code, printed = typed(shop.folder, "jobs", "shop:app", "show", job.id, "--json")
    assert code == 0
    shown = json.loads(printed)["job"]
    assert shown["payload"] == {"account": "acct-0"}
    assert shown["result"] == "paid"


@pytest.mark.long
def test_a_probe_knows_the_workers_of_this_host(typed: CommandLine, shop: CliShop) -> None:
    assert typed(shop.folder, "check", "shop:app") == (
        1,
        f"No worker on {socket.gethostname()} has reported within the last day.\n",
    )
    report(shop, "here:7:ab")
    code, printed = typed(shop.folder, "check", "shop:app")
    assert (code, printed.split(",")[0]) == (0, "here:7:ab: running")
    assert typed(shop.folder, "check", "shop:app", "--host", "elsewhere")[0] == 1
    assert typed(shop.folder, "check", "shop:app", "--worker", "here")[0] == 0
    assert typed(shop.folder, "check", "shop:app", "--worker", "there")[0] == 1
    code, printed = typed(shop.folder, "check", "shop:app", "--json")
    assert json.loads(printed)["alive"] is True


def test_a_worker_that_stops_is_alive_but_not_ready(typed: CommandLine, shop: CliShop) -> None:
    report(shop, "here:7:ab", stopping=True)
    assert typed(shop.folder, "check", "shop:app")[0] == 0
    assert typed(shop.folder, "check", "shop:app", "--ready")[0] == 1


@pytest.mark.parametrize("columns", [60, 80])
def test_a_list_of_jobs_fits_a_narrow_terminal(
    shop: CliShop, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str], columns: int
) -> None:
    from relet._cli.jobs import table_of

    monkeypatch.setenv("COLUMNS", str(columns))
    monkeypatch.setattr(output, "on_terminal", lambda: True)
    jobs = shop.many(3, delay=timedelta(hours=1))
    table_of(jobs)
    lines = [line for line in capsys.readouterr().out.splitlines() if line.strip()]
    assert max(map(len, lines)) <= columns
    rows = [line for line in lines if "pending" in line]
    assert len(rows) == 3, "one line a job"
    assert all(row.split()[0] == job.id[-8:] for row, job in zip(rows, jobs, strict=True))
