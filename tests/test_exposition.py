"""The metrics for Prometheus, as its own parsers read them; and that dashboard and alerts ask for nothing else."""

from __future__ import annotations

import json
import math
import re
from contextlib import closing
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import pytest
import yaml
from prometheus_client.openmetrics.parser import text_string_to_metric_families as parse_openmetrics
from prometheus_client.parser import text_string_to_metric_families as parse_text

from relet import App, Backoff
from relet._core.job import AttemptOutcome
from relet._core.stats import BOUNDS, Histogram, StatPoint
from relet._core.views import QueueInfo
from relet._core.worker import WorkerInfo
from relet._web.metrics import content_type, exposition, wants_openmetrics
from tests.pages import DOCS
from tests.worker.working import over, working

HOSTILE = [
    "default",
    'a"b\\c',
    "two\nlines",
    "two\\nlines",
    '"} 1\nrelet_jobs{queue="forged',
    "nul\x00 and \x1b[31mred",
    "nul\x01 and \x1b[31mred",  # the same, once it can be shown
    "lone \ud800 half",
    "\r\n\t\x85\u2028",
    "",
    "{}#=,le",
    "日本語 🐘",
    "x" * 5000,
]

both_formats = pytest.mark.parametrize("openmetrics", [False, True])


def histogram(*seconds: float) -> Histogram:
    counts = [0] * (len(BOUNDS) + 1)
    for one in seconds:
        counts[next((n for n, bound in enumerate(BOUNDS) if one <= bound), len(BOUNDS))] += 1
    return Histogram(tuple(counts), sum(seconds))


def point(queue: str, **counts: int) -> StatPoint:
    waits, starts, runs = histogram(0.004, 0.2, 9000.0), histogram(0.001), histogram(1.5, 2.0)
    return StatPoint(datetime.now(UTC), 0.0, queue, counts, waits=waits, starts=starts, runs=runs)


def worker(name: str, *, host: str = "one", **more: Any) -> WorkerInfo:
    now = datetime.now(UTC)
    facts = {"name": name, "host": host, "pid": 1, "started_at": now, "seen_at": now, "queues": None, "slots": 10}
    facts |= {"running": 3, "tasks": (), "lease": 30.0, "version": "1", "stopping": False, "lost": False}
    return WorkerInfo(**{**facts, **more})


def parsed(text: str, *, openmetrics: bool) -> dict[str, Any]:
    text.encode()
    families = {family.name: family for family in (parse_openmetrics if openmetrics else parse_text)(text)}
    assert not openmetrics or text.endswith("\n# EOF\n")
    return families


def samples(families: dict[str, Any]) -> dict[tuple[str, frozenset[tuple[str, str]]], float]:
    every = [sample for family in families.values() for sample in family.samples]
    found = {(one.name, frozenset(one.labels.items())): one.value for one in every}
    assert len(found) == len(every), "a series is told twice: Prometheus would refuse all of it"
    return found


def worth(found: dict[Any, float], name: str, **labels: str) -> float:
    return found[name, frozenset(labels.items())]


@both_formats
def test_the_exposition_has_the_values_of_the_client(openmetrics: bool) -> None:
    totals = [point("default", succeeded=5, lost=2), point("mail", failed=1, unheard_of=4)]
    queues = [
        QueueInfo("default", False, None, 1, 2, 3, 4, 5, oldest=12.5),
        QueueInfo("mail", True, 8, 0, 0, 0, 0, 0, oldest=None, counted_at=datetime.fromtimestamp(1000.5, UTC)),
    ]
    workers = [worker("a"), worker("b", stopping=True, running=0), worker("c", host="two"), worker("d", lost=True)]
    text = exposition(totals, queues, workers, version="1.2.3", schema=7, openmetrics=openmetrics)
    found = samples(parsed(text, openmetrics=openmetrics))
    states = ("pending", "queued", "running", "paused", "failed")
    assert [worth(found, "relet_jobs", queue="default", state=state) for state in states] == [1, 2, 3, 4, 5]
    assert worth(found, "relet_queue_oldest_seconds", queue="default") == 12.5
    assert worth(found, "relet_queue_oldest_seconds", queue="mail") == 0
    assert [worth(found, "relet_queue_paused", queue=queue) for queue in ("default", "mail")] == [0, 1]
    assert [value for (name, _), value in found.items() if name == "relet_queue_max_running"] == [8]
    counted = {labels: value for (name, labels), value in found.items() if "counted_timestamp" in name}
    assert counted == {frozenset({("queue", "mail")}): 1000.5}, "what was counted for this look needs no moment"
    ended = {
        outcome: worth(found, "relet_attempts_total", queue="default", outcome=outcome) for outcome in AttemptOutcome
    }
    assert ended == dict.fromkeys(AttemptOutcome, 0) | {"succeeded": 5, "lost": 2}
    assert worth(found, "relet_attempts_total", queue="mail", outcome="unheard_of") == 4
    assert worth(found, "relet_lease_losses_total", queue="default") == 2
    assert {state: worth(found, "relet_workers", state=state) for state in ("working", "stopping", "lost")} == {
        "working": 2,
        "stopping": 1,
        "lost": 1,
    }
    assert [worth(found, "relet_worker_slots", host=host) for host in ("one", "two")] == [20, 10]
    assert [worth(found, "relet_worker_slots_used", host=host) for host in ("one", "two")] == [3, 3]
    assert worth(found, "relet_build_info", version="1.2.3", schema="7") == 1


@both_formats
def test_histograms_are_cumulative_and_end_with_all(openmetrics: bool) -> None:
    text = exposition([point("default")], [], [], version="1", openmetrics=openmetrics)
    found = samples(parsed(text, openmetrics=openmetrics))
    buckets = {
        float(dict(labels)["le"]): value
        for (name, labels), value in found.items()
        if name == "relet_job_wait_seconds_bucket"
    }
    assert list(buckets) == [*BOUNDS, math.inf]
    assert (buckets[0.005], buckets[0.1], buckets[0.25], buckets[7200.0], buckets[math.inf]) == (1, 1, 2, 2, 3)
    assert worth(found, "relet_job_wait_seconds_count", queue="default") == 3
    assert worth(found, "relet_job_wait_seconds_sum", queue="default") == pytest.approx(9000.204)


@both_formats
def test_no_name_breaks_a_line_or_meets_another(openmetrics: bool) -> None:
    queues = [QueueInfo(name, False, 1, 1, 1, 1, 1, 1, oldest=1.0) for name in HOSTILE]
    hosts = [worker(str(n), host=name) for n, name in enumerate(HOSTILE)]
    text = exposition(
        [point(name, succeeded=1) for name in HOSTILE], queues, hosts, version="1", openmetrics=openmetrics
    )
    assert not [letter for letter in text if not letter.isprintable() and letter != "\n"]
    found = samples(parsed(text, openmetrics=openmetrics))
    named = {dict(labels)["queue"] for (name, labels) in found if name == "relet_jobs"}
    assert len(named) == len(HOSTILE)
    assert {"default", 'a"b\\c', "two\nlines", "two\\nlines", HOSTILE[4], "日本語 🐘", ""} <= named
    assert "forged" not in named
    assert len([key for key in found if key[0] == "relet_worker_slots"]) == len(HOSTILE)


@both_formats
def test_an_empty_store_is_told_as_well(openmetrics: bool) -> None:
    found = samples(parsed(exposition([], [], [], version="1", openmetrics=openmetrics), openmetrics=openmetrics))
    assert {name for name, _ in found} == {"relet_build_info", "relet_workers"}


@pytest.mark.parametrize(
    ("accept", "wanted"),
    [
        ("", False),
        ("*/*", False),
        ("text/plain", False),
        ("application/openmetrics-text", True),
        ("application/openmetrics-text;version=1.0.0;q=0.6,text/plain;version=0.0.4;q=0.3,*/*;q=0.2", True),
        ("application/openmetrics-text; version=1.0.0; q=0.2, text/plain; q=0.9", False),
        ("application/openmetrics-text;q=0", False),
        ("application/openmetrics-text;q=odd", False),
        (",;,=;q", False),
    ],
)
def test_who_asks_for_openmetrics_gets_it(accept: str, wanted: bool) -> None:
    assert wants_openmetrics(accept) is wanted
    assert ("openmetrics" in content_type(openmetrics=wanted)) is wanted


@both_formats
def test_a_worker_and_its_jobs_are_told(tmp_path: Path, openmetrics: bool) -> None:
    app = App(f"sqlite:///{tmp_path / 'relet.db'}")

    @app.task(queue="mail", max_attempts=2, backoff=Backoff(base=0, max=0))
    def work(fails: bool) -> None:
        if fails:
            raise ValueError("no")

    with closing(app):
        with working(app):
            over(app, work.enqueue(False), work.enqueue(True))
            work.using(delay=60).enqueue(False)
            queues, workers = app.client.queues(), app.client.workers()
        page = exposition(app.client.totals(), queues, workers, version="1", openmetrics=openmetrics)
    found = samples(parsed(page, openmetrics=openmetrics))
    ended = {one: worth(found, "relet_attempts_total", queue="mail", outcome=one) for one in AttemptOutcome}
    assert ended == dict.fromkeys(AttemptOutcome, 0) | {"succeeded": 1, "retried": 1, "failed": 1}
    assert worth(found, "relet_jobs", queue="mail", state="pending") == 1
    assert worth(found, "relet_jobs", queue="mail", state="failed") == 1
    for name in ("wait", "start", "duration"):
        assert worth(found, f"relet_job_{name}_seconds_count", queue="mail") == 3
    assert worth(found, "relet_worker_slots", host=workers[0].host) == 10


# The dashboard and the alerts

WORD = re.compile(r"\b(relet_\w+)(?:\{([^}]*)\})?")
GROUPING = re.compile(r"\b(?:by|without|on|ignoring) \(([^)]*)\)")
OF_THE_SCRAPE = {"job", "instance"}


def series() -> dict[str, set[str]]:
    """The labels of everything that may be told."""
    found: dict[str, set[str]] = {}
    queues = [QueueInfo("default", False, 1, 1, 1, 1, 1, 1, oldest=1.0)]
    for openmetrics in (False, True):
        page = exposition([point("default")], queues, [worker("a")], version="1", schema=1, openmetrics=openmetrics)
        for name, labels in samples(parsed(page, openmetrics=openmetrics)):
            found.setdefault(name, set()).update(dict(labels))
    return found


def dashboard() -> dict[str, Any]:
    board: dict[str, Any] = json.loads((DOCS / "grafana" / "relet.json").read_text())
    return board


def rules() -> list[dict[str, Any]]:
    groups = yaml.safe_load((DOCS / "grafana" / "alerts.yml").read_text())["groups"]
    return [rule for group in groups for rule in group["rules"]]


def expressions() -> dict[str, str]:
    board = dashboard()
    asked = {f"{panel['title']} {one['refId']}": one["expr"] for panel in board["panels"] for one in panel["targets"]}
    asked |= {f"${one['name']}": one["definition"] for one in board["templating"]["list"] if "definition" in one}
    return asked | {rule["alert"]: rule["expr"] for rule in rules()}


@pytest.mark.parametrize(("where", "expression"), expressions().items())
def test_dashboard_and_alerts_use_only_exported_metrics(where: str, expression: str) -> None:
    known = series()
    asked = WORD.findall(expression)
    assert asked
    for name, matchers in asked:
        assert name in known, f"{where} asks for {name}"
        labels = set(re.findall(r"(\w+)(?:=~|!~|!=|=)", matchers))
        assert labels <= known[name] | OF_THE_SCRAPE, f"{where}: {name} has no label {labels}"
    every = set().union(*(known[name] for name, _ in asked)) | OF_THE_SCRAPE
    for group in GROUPING.findall(expression):
        assert {label.strip() for label in group.split(",")} <= every, where
    assert expression.count("(") == expression.count(")")
    assert expression.count("{") == expression.count("}")


def test_every_metric_is_on_the_dashboard_or_watched_by_an_alert() -> None:
    used = {name for expression in expressions().values() for name, _ in WORD.findall(expression)}
    bases = {re.sub(r"_(bucket|sum|count)$", "", name) for name in series()}
    assert bases - {re.sub(r"_(bucket|sum|count)$", "", name) for name in used} == {"relet_queue_max_running"}


def test_the_guide_names_every_metric_and_every_label() -> None:
    text = (DOCS / "guides" / "telemetry.md").read_text()
    bases = {re.sub(r"_(bucket|sum|count)$", "", name): labels - {"le"} for name, labels in series().items()}
    for name, labels in bases.items():
        (row,) = [line for line in text.splitlines() if line.startswith("|") and f"`{name}`" in line]
        assert set(re.findall(r"`([a-z]+)`", row.split("|")[3])) == labels, name


def test_the_dashboard_is_one_that_grafana_takes() -> None:
    board = dashboard()
    assert board["schemaVersion"] >= 36
    assert [one["name"] for one in board["templating"]["list"]] == ["datasource", "job", "queue"]
    ids = [panel["id"] for panel in board["panels"]]
    assert len(set(ids)) == len(ids)
    taken: set[tuple[int, int]] = set()
    for panel in board["panels"]:
        assert panel["datasource"] == {"type": "prometheus", "uid": "${datasource}"}
        assert panel["description"]
        at = panel["gridPos"]
        cells = {(at["x"] + x, at["y"] + y) for x in range(at["w"]) for y in range(at["h"])}
        assert not cells & taken, f"{panel['title']} lies on another"
        assert max(x for x, _ in cells) < 24
        taken |= cells
    assert re.search(r"histogram_quantile\(0\.99", json.dumps(board))


def test_alerts_name_the_problem() -> None:
    names = [rule["alert"] for rule in rules()]
    assert len(set(names)) == len(names)
    for rule in rules():
        assert rule["annotations"]["summary"]
        assert rule["labels"]["severity"] in ("info", "warning", "critical")
