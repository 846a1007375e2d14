"""The benchmarks: what they measure is coherent, complete and checked. Nothing here depends on how fast anything is."""

from __future__ import annotations

import importlib
import json
import os
import signal
import socket
import subprocess
import sys
import threading
import time
from collections.abc import Callable, Iterator
from pathlib import Path
from random import Random
from typing import Any

import psycopg
import pytest

from bench import __main__ as command_line
from bench import bars, cells, pages, picture, report, runner, summary
from bench.cells import Wrong
from bench.commands import enqueue
from bench.environments import Unavailable
from bench.failover import command as failover
from bench.failover.load import Run, longest_gap, overlaps
from bench.failover.scenarios import SCENARIOS as FAILOVERS
from bench.fleet_model import Costs, Fleet, Simulation
from bench.lab import Lab, Options
from bench.peer_faults import report as fault_report
from bench.peer_faults import testbed
from bench.peer_faults.history import History
from bench.peer_faults.peers import PEERS
from bench.peer_faults.scenarios import SCENARIOS, make_plan
from bench.plan import Cell, Plan, Row, join
from bench.proxy import Proxy
from bench.results import Results
from bench.rows import Copier, enqueue_one
from bench.server import Postgres
from bench.systems import ALL, RELET, SQLITE
from relet._web.api import ENDPOINTS
from tests import forks
from tests.plugin.command_line import CommandLine
from tests.servers import PrivateServer, Server

SCRATCH = "select nspname from pg_namespace where nspname like 'relet_bench_%'"


@pytest.fixture(scope="module")
def server(pg_servers: list[Server]) -> Server:
    return pg_servers[0]


@pytest.fixture
def lab(server: Server) -> Iterator[Lab]:
    with Lab(Options(quick=True, repeat=1, dsn=server.dsn, jobs=200)) as made:
        yield made


@pytest.fixture
def own_database(server: Server) -> Iterator[str]:
    """A database in which no other test has schemas."""
    made = Postgres(server.dsn)
    name = made.create()
    yield made.url(name)
    made.drop(name)


def plans() -> dict[str, Plan]:
    lab = Lab(Options(quick=True))
    return {name: importlib.import_module(f"bench.commands.{name}").plan(lab) for name in command_line.COMMANDS}


def test_a_command_has_help_rows_and_cells(capsys: pytest.CaptureFixture[str]) -> None:
    assert command_line.main([]) == 0
    listed = capsys.readouterr().out
    for name, plan in plans().items():
        assert f"    {name} " in listed
        keys = [(cell.name, cell.system) for cell in plan.cells]
        assert keys
        assert len(set(keys)) == len(keys)
        assert len({row.name for row in plan.rows}) == len(plan.rows)


def test_every_bar_is_judged_by_a_row_of_the_whole_run() -> None:
    rows = {row.name for row in plans()["all"].rows} | {
        row.name for name in ("web", "growth") for row in plans()[name].rows
    }
    assert {bar.row for bar in bars.BARS} <= rows
    assert set(bars.REFERENCE) <= rows
    assert {name for row in bars.REFERENCE.values() for name in row} <= set(ALL)


def test_a_part_can_be_left_out_and_added_to_the_report_later(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setattr(picture, "to_png", lambda svg, png: False)
    rows = importlib.import_module("bench.commands.all").plan(Lab(Options(quick=True, without=("soak", "flat")))).rows
    assert {"soak", "snapshot"}.isdisjoint(row.name for row in rows)
    assert {row.name for row in rows} < {row.name for row in plans()["all"].rows}
    whole, soak = Results.begin("all", {"without": ["soak"]}), Results.begin("soak", {})
    whole.add(turn=1, row="drain1", system="relet", rate=1000.0)
    soak.add(turn=1, row="soak", system="relet", mib=50.0, growth=1.0, bloat=1.0)
    files = [tmp_path / "whole.json", tmp_path / "soak.json"]
    for results, file in zip((whole, soak), files, strict=True):
        results.save(file)
    assert command_line.main(["report", *map(str, files), "--to", str(tmp_path / "both")]) == 0
    assert "relet: growth at most 10 MiB: met" in capsys.readouterr().out
    (page,) = (tmp_path / "both").glob("*.md")
    assert f"Measured apart, on the same machine: soak at {soak.head['revision']}." in page.read_text()


def test_every_request_of_the_api_that_changes_something_is_timed() -> None:
    changing = {f"{one.method} {one.path}".replace(":path", "") for one in ENDPOINTS if one.method != "GET"}
    assert set(pages.BODIES) == changing


def test_a_store_is_kept_only_on_a_server_that_stays(capsys: pytest.CaptureFixture[str]) -> None:
    with pytest.raises(SystemExit):
        command_line.main(["growth", "--keep", "large"])
    assert "--keep needs --dsn" in capsys.readouterr().err


def test_a_slow_call_is_named_with_its_time() -> None:
    results = Results.begin("growth", {})
    for call, milliseconds in (("cancel", 4.0), ("erase", 180.2), ("count", 100.6)):
        results.add(turn=1, cell="calls", row="calls", system=call, p99=milliseconds)
    (verdict,) = [bar.verdict(results) for bar in bars.BARS if bar.row == "calls"]
    assert (verdict.met, verdict.found) == (False, "2 of 3 are not: erase, 180 ms; count, 101 ms")


COSTS = Costs(idle_rate=2.0, idle_seconds=0.0001, busy_rate=0.5, busy_seconds=0.0002, job_seconds=0.0009)


def test_simulated_processes_without_jobs_cost_their_checks() -> None:
    found = Simulation(Fleet(500, 10, 0.0, 1.0, cores=4), COSTS, Random(1)).run(20.0)
    assert found["statements"] == pytest.approx(1000, rel=0.01)
    assert found["cores"] == pytest.approx(0.1, rel=0.01)


def test_simulated_jobs_cost_three_statements_and_wait_for_a_slot_if_all_are_taken() -> None:
    """A hundred slots: 80 jobs a second of a second each fit, 120 do not."""
    (fits, exceeds) = (
        Simulation(Fleet(10, 10, rate, 1.0, cores=4), COSTS, Random(1)).run(30.0) for rate in (80.0, 120.0)
    )
    assert fits["started"] == pytest.approx(80 * 30, rel=0.1)
    assert fits["cores"] == pytest.approx(80 * 0.0009 + 10 * 0.5 * 0.0002, rel=0.1)
    assert fits["p50"] == pytest.approx(0.6, rel=0.01), "an enqueue and a claim, and no wait"
    assert exceeds["started"] == pytest.approx(100 * 30, rel=0.1), "no more than slots allow"
    assert exceeds["p99"] > 1000


def test_a_simulated_server_without_enough_cores_makes_jobs_wait() -> None:
    found = Simulation(Fleet(5_000, 10, 1_000.0, 0.1, cores=1), COSTS, Random(1)).run(5.0)
    assert found["cores"] > 1.0
    assert found["p99"] > 100.0


def test_systems_take_turns_and_begin_with_another_one_each_time() -> None:
    drains = (Cell("drain", name, counted(1.0)) for name in "abc")
    plan = Plan((), (*drains, Cell("once", "d", counted(1.0), most=1)))
    assert [cell.system for _, cell in plan.turns(2)] == ["a", "b", "c", "d", "b", "c", "a"]
    assert join([plan, plan]) == plan
    assert [cell.system for cell in plan.only(["b"]).cells] == ["b"]


def counted(number: float) -> Callable[[Lab], dict[str, Any]]:
    return lambda lab: {"drain1": {"rate": number, "others": 0.1}}


def refuse(error: Exception) -> Callable[[Lab], dict[str, Any]]:
    def measure(lab: Lab) -> dict[str, Any]:
        raise error

    return measure


def test_a_run_goes_on_where_it_was_interrupted(tmp_path: Path) -> None:
    file = tmp_path / "run.jsonl"
    stopped = Plan((), (Cell("x", "a", counted(1.0)), Cell("x", "b", refuse(KeyboardInterrupt()))))  # type: ignore[arg-type]
    with pytest.raises(KeyboardInterrupt):
        runner.run(stopped, Lab(Options(repeat=1)), Results.begin("all", {}, file))
    results = Results.resume(file)
    assert results.matches({})
    runner.run(Plan((), (Cell("x", "a", counted(7.0)), Cell("x", "b", counted(2.0)))), Lab(Options(repeat=1)), results)
    assert (results.median("drain1", "a"), results.median("drain1", "b")) == (1.0, 2.0)
    results.discard_progress()
    assert not file.exists()


def test_lost_jobs_and_missing_systems_are_told(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    some = (
        Cell("x", "a", refuse(Wrong("3 handler calls instead of 4"))),
        Cell("x", "b", refuse(Unavailable("there is no b"))),
        Cell("x", "c", counted(1.0)),
    )
    results = Results.begin("peers", {})
    runner.run(Plan((), some), Lab(Options(repeat=2)), results)
    assert results.errors() == ["x a: Wrong: 3 handler calls instead of 4"] * 2
    assert results.skipped() == {"b": "there is no b"}
    assert "ERROR in x, a: 3 handler calls instead of 4" in capsys.readouterr().err
    assert any(line.startswith("ERROR: x a") for line in report.closing(results))


def measured(**rates: float) -> Results:
    results = Results.begin("peers", {})
    for turn in (1, 2, 3):
        for system, rate in rates.items():
            results.add(turn=turn, cell="drain1", row="drain1", system=system.replace("_", "-"), rate=rate * turn)
    return results


@pytest.mark.long
def test_bars_compare_within_a_turn_and_a_slow_peer_makes_the_run_void() -> None:
    results = measured(raw=100.0, relet=90.0, graphile_worker=60.0, pg_boss=62.0, pgqueuer=21.0)
    (verdict,) = [bar.verdict(results) for bar in bars.BARS if bar.row == "drain1"]
    assert (verdict.met, verdict.found) == (True, "1.45 of pg-boss")
    assert bars.void_reasons(results) == []
    held_up = measured(raw=100.0, relet=50.0, graphile_worker=30.0, pg_boss=62.0, pgqueuer=21.0)
    assert [str(bar.verdict(held_up)) for bar in bars.BARS if bar.row == "drain1"] == [
        "relet at least 1.2 of the best peer: MISSED (0.81 of pg-boss)"
    ]
    assert bars.void_reasons(held_up) == ["drain1: graphile-worker reached 0.30 of raw, the reference is 0.55"]
    assert all(bar.verdict(Results.begin("all", {})).met is None for bar in bars.BARS)


def test_a_report_has_tables_bars_and_a_picture_and_can_be_rendered_again(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setattr(picture, "to_png", lambda svg, png: False)
    results = measured(raw=100.0, relet=90.0, graphile_worker=60.0)
    results.add(turn=1, row="snapshot", system="relet", blocks=[3.0, 2.0], disk=[1, 2])
    rows = (Row("drain1", "Drain <1>"), Row("snapshot", "Blocks", "blocks"))
    data, page, svg = report.write(Plan(rows, ()), results, tmp_path)
    text = page.read_text()
    assert "| relet | 180 | 90 to 270 | 0.90 |" in text
    assert "- bar: relet at least 1.2 of the best peer: met (1.50 of graphile-worker)" in text
    assert "| relet | 3  2 |" in text
    assert "Drain &lt;1&gt;" in svg.read_text()
    assert Results.load(data).records == results.records
    assert command_line.main(["report", str(data), "--to", str(tmp_path / "again")]) == 0
    assert "1.50 of graphile-worker" in capsys.readouterr().out


def test_a_summary_names_the_best_peer_and_goes_between_the_marks(tmp_path: Path) -> None:
    page = tmp_path / "page.md"
    page.write_text("before\n<!-- summary -->\nstale\n<!-- end of summary -->\nafter\n")
    results = measured(raw=100.0, relet=90.0, graphile_worker=60.0, pg_boss=45.0)
    for _ in range(2):
        summary.publish(results, [page])
    text = page.read_text()
    assert "| drain, 1 process, jobs/s | 200 | **180** | 120 (graphile-worker) | 1.50 |\n<!-- end" in text
    assert "stale" not in text
    assert text.startswith("before\n")
    assert text.endswith("\nafter\n")


def test_the_pages_show_the_latest_run() -> None:
    runs = sorted(report.DOCS.glob("*-all.json"))
    shown = summary.table(Results.load(runs[-1])) if runs else summary.NO_RUN
    for page in summary.PAGES:
        assert summary.BETWEEN.findall(page.read_text()) == [shown]


@pytest.mark.long
def test_a_command_measures_and_writes_its_results(
    server: Server, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(picture, "to_png", lambda svg, png: False)
    made: list[str] = []
    create = Postgres.create

    def noted(*args: Any) -> Any:
        made.append(create(*args))
        return made[-1]

    monkeypatch.setattr(Postgres, "create", noted)
    options = ["--quick", "--jobs", "100", "--dsn", server.dsn, "--to", str(tmp_path)]
    assert command_line.main(["features", *options, "--only", "dependencies"]) == 0
    (file,) = tmp_path.glob("*.json")
    (record,) = json.loads(file.read_text())["records"]
    assert (record["row"], record["system"], record["jobs"]) == ("features", "dependencies", 110)
    assert record["rate"] < record["enqueue"]
    with psycopg.connect(server.dsn) as connection:
        left = connection.execute("select datname from pg_database where datname = any(%s)", [made]).fetchall()
    assert made
    assert left == []


@pytest.mark.long
def test_the_limits_of_enqueue_write_the_rows_that_they_count(lab: Lab) -> None:
    assert enqueue.copy(lab)["bulk"]["rate"] > 0  # type: ignore[call-overload]
    assert enqueue.insert(lab)["single"]["rate"] > 0  # type: ignore[call-overload]


@pytest.mark.long
def test_jobs_on_sqlite_are_enqueued_and_drained(lab: Lab) -> None:
    found = cells.drain(lab, SQLITE, 100)
    assert found["jobs"] == 110
    assert found["bulk"]["jobs"] == 100


def test_an_unknown_system_is_refused(capsys: pytest.CaptureFixture[str]) -> None:
    with pytest.raises(SystemExit):
        command_line.main(["features", "--only", "kafka"])
    assert "--only kafka: not one of dependencies, fair groups" in capsys.readouterr().err


@pytest.mark.long
def test_copies_of_a_row_are_jobs_like_any_other(lab: Lab) -> None:
    with lab.postgres_place(RELET) as place:
        Copier(place, "relet.jobs", enqueue_one(place.url).id).multiply(300, {"queue": "'q' || n % 3"})
        assert cells.drain_place(place, 301)["jobs"] == 301
        assert place.value("select count(distinct queue) from relet.finished") == 4


def test_the_proxy_delays_and_counts_round_trips() -> None:
    with socket.create_server(("127.0.0.1", 0)) as echo, Proxy(echo.getsockname(), delay=0.05) as proxy:

        def answer() -> None:
            connection, _ = echo.accept()
            with connection:
                while data := connection.recv(100):
                    connection.sendall(data)

        thread = threading.Thread(target=answer)
        thread.start()
        with socket.create_connection(("127.0.0.1", proxy.port)) as client:
            begin = time.monotonic()
            for _ in range(2):
                client.sendall(b"ping")
                assert client.recv(100) == b"ping"
            assert time.monotonic() - begin >= 0.2
        thread.join(10)
        assert proxy.round_trips == 2


def relet_bench(*arguments: str, **env: str) -> subprocess.CompletedProcess[str]:
    command = [sys.executable, "-m", "relet", "bench", *arguments]
    return forks.run(command, timeout=60, env={**os.environ, **env})


@pytest.mark.long("sqlite", "memory")
def test_relet_bench_measures_a_store_and_leaves_nothing_behind(store_url: str, tmp_path: Path) -> None:
    done = relet_bench(store_url, "--jobs", "100", "--json")
    assert done.returncode == 0, done.stderr
    figures = json.loads(done.stdout)
    assert figures["jobs"] == 100
    assert all(figures[name] > 0 for name in ("single", "bulk", "drain", "raw_single", "raw_bulk", "raw_drain"))
    latency = figures["latency"]
    assert 0 < latency["p50"] <= latency["p90"] <= latency["p99"] <= latency["max"]
    assert list(tmp_path.iterdir()) == []
    if store_url.startswith("postgres"):
        with psycopg.connect(store_url) as connection:
            assert connection.execute(SCRATCH).fetchall() == []


@pytest.mark.long
def test_relet_bench_takes_an_app_and_prints_a_table(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    (tmp_path / "shop.py").write_text("from relet import App\napp = App('sqlite:///shop.db')\n")
    monkeypatch.chdir(tmp_path)
    done = relet_bench("shop:app", "--jobs", "100")
    assert done.returncode == 0, done.stderr
    assert "100 jobs, 1 worker process with 10 slots" in done.stdout
    assert "Every job ran exactly once." in done.stdout
    assert not (tmp_path / "shop.db").exists()


@pytest.mark.long
@pytest.mark.parametrize(
    ("arguments", "code", "said"),
    [
        (["mysql://db"], 2, "starts with sqlite:// or postgresql://"),
        (["--jobs", "1"], 2, "--jobs must be a whole number from 100"),
        (["--processes", "0"], 2, "--processes must be a whole number from 1"),
        (["nowhere:app"], 1, "Cannot find module 'nowhere'."),
        (["sqlite:////no/such/folder/x.db"], 1, "Cannot make a scratch folder in /no/such/folder"),
        (["postgresql://reader:secret@127.0.0.1:1/db"], 1, "cannot connect to postgresql://reader@127.0.0.1:1/db"),
    ],
)
def test_relet_bench_refuses_in_one_sentence(
    typed: CommandLine, tmp_path: Path, arguments: list[str], code: int, said: str
) -> None:
    ended, printed = typed(tmp_path, "bench", *arguments)
    assert ended == code
    assert printed.startswith("relet: ")
    assert said in printed
    assert "Traceback" not in printed
    assert "secret" not in printed


@pytest.mark.long
@pytest.mark.parametrize("number", [signal.SIGINT, signal.SIGTERM])
def test_relet_bench_cleans_up_when_it_is_interrupted(number: signal.Signals, own_database: str) -> None:
    command = [sys.executable, "-m", "relet", "bench", own_database, "--jobs", "1000000"]
    with (
        forks.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.PIPE) as process,
        psycopg.connect(own_database, autocommit=True) as connection,
    ):
        try:
            deadline = time.monotonic() + 30
            while not connection.execute(SCRATCH).fetchall() and time.monotonic() < deadline:
                time.sleep(0.02)
            process.send_signal(number)
            _, said = process.communicate(timeout=30)
        finally:
            process.kill()  # has no effect on one that has ended
        assert process.returncode == 130, said
        assert connection.execute(SCRATCH).fetchall() == []


def test_the_history_of_faults_pairs_each_run_with_the_next_of_its_job() -> None:
    def line(event: str, job: int, run: str, at: float) -> str:
        return json.dumps({"event": event, "pid": int(run.partition(".")[0]), "at": at, "job": job, "run": run})

    history = History(
        [
            line("start", 1, "10.1", 1.0), line("start", 2, "10.2", 1.1), line("end", 1, "10.1", 2.0),
            line("start", 2, "11.1", 5.0), line("abort", 2, "10.2", 5.5), line("end", 2, "11.1", 6.0),
        ]
    )  # fmt: skip
    ((first, second),) = history.reruns()
    assert (first.id, first.is_aborted, first.has_completed) == ("10.2", True, False)
    assert (second.id, second.pid, second.has_completed) == ("11.1", 11, True)
    assert history.has_completed(1)


def test_the_plan_of_faults_depends_on_the_seed_alone() -> None:
    def plan(seed: int) -> object:
        return make_plan(seed, strikes=5, seconds=10.0, short=20, long=2)

    assert plan(1) == plan(1)
    assert plan(1) != plan(2)


def test_a_table_of_faults_has_a_column_for_each_figure_and_a_line_for_each_peer() -> None:
    found: dict[str, dict[str, object] | str] = {
        "Relet": {"jobs": 200, "kills": 7, "p50": 3.0, "max": None},
        "pg-boss": "did not run",
    }
    table = fault_report.results("kill", found)
    assert "| Relet | 200 | 7 | - | 3 | - |" in table
    assert "| pg-boss | did not run |" in table
    assert len({line.count("|") for line in table.splitlines() if line.startswith("|")}) == 1


@pytest.mark.long
def test_relet_runs_no_job_twice_when_the_server_restarts(private_server: PrivateServer) -> None:
    with testbed.Testbed(PEERS["Relet"], private_server, "test") as bed:
        found = SCENARIOS["restart"](bed, 1)
    counted = ("stuck", "lost", "failed", "after completion", "while running", "after abort", "exits", "idle")
    assert {name: found[name] for name in counted} == dict.fromkeys(counted, 0)


def test_gaps_and_overlaps_of_runs_are_those_after_the_fault() -> None:
    never = float("inf")
    runs = [Run("a", 1.0, 2.0), Run("b", 1.5, never), Run("a", 1.8, 2.5), Run("b", 1.6, 1.9), Run("c", 3.0, 4.0)]
    assert overlaps(sorted(runs, key=lambda run: run.start)) == 1, "a run that was cut off has no end to compare"
    assert longest_gap([1.0, 9.0, 10.0, 12.0, 12.5], fault=9.5) == 2.0
    assert longest_gap([1.0, 9.0], fault=8.0) == 8.0, "from before the fault until after it"
    assert longest_gap([1.0], fault=2.0) == 0.0


def test_a_failover_that_cannot_be_measured_here_is_named_as_skipped(monkeypatch: pytest.MonkeyPatch) -> None:
    scenario = FAILOVERS["sync"]._replace(missing=lambda: "faketime")
    found = {"sync": failover.measure("sync", scenario), "hang": "did not run"}
    assert found["sync"] == "skipped: needs faketime"
    _, _, *lines = failover.table(found).splitlines()
    assert [line.split("|")[2].strip() for line in lines] == list(found.values())


def test_a_row_of_a_failover_has_all_columns() -> None:
    figures = {
        "acknowledged": 2000, "lost": 3, "started twice": 4, "failed first": 1, "ended twice": 2, "overlap": 0,
        "without acknowledgement": 2.25, "without start": 2.5, "errors": {"StoreUnavailable": 3},
        "to acknowledgement": 0.2, "to start": 0.3,
    }  # fmt: skip
    assert failover.cells(figures) == [
        "2,000 (3 calls raised StoreUnavailable)", "3", "4 / 2 / 0; 1 after an attempt that failed", "2.2 s", "2.5 s",
        "0.20 s / 0.30 s",
    ]  # fmt: skip
    assert len(failover.cells(figures)) == len(failover.HEADS) - 1


@pytest.mark.long
def test_a_failover_is_measured(capsys: pytest.CaptureFixture[str]) -> None:
    assert command_line.main(["failover", "--scenario", "sync"]) == 0
    figures = json.loads(capsys.readouterr().err.partition("bench: sync: ")[2])
    assert figures["acknowledged"] > 0
    assert (figures["lost"], figures["ended twice"], figures["overlap"]) == (0, 0, 0)
    assert figures["exit codes"] == [0, 0, 0]
