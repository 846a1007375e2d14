"""Traces in a real worker process and its children, as a user sets them up."""

from __future__ import annotations

import json
import os
import sys
from pathlib import Path
from typing import Any

import pytest

from relet import App, Draft, new_id
from relet._core.job import Policy
from tests import forks

SHOP = """
import logging
import os
from pathlib import Path

from opentelemetry import trace
from opentelemetry.sdk.trace import TracerProvider
from opentelemetry.sdk.trace.export import ConsoleSpanExporter, SimpleSpanProcessor

from relet import App, Attempt
from relet.contrib.opentelemetry import instrument

provider = TracerProvider()
out = open(Path(__file__).parent / "spans", "a", buffering=1)
write = ConsoleSpanExporter(out=out, formatter=lambda span: span.to_json(indent=None) + "\\n")
provider.add_span_processor(SimpleSpanProcessor(write))
trace.set_tracer_provider(provider)

app = App()
instrument(app)
log = logging.getLogger("shop")


def body() -> None:
    log.info("at work")
    with trace.get_tracer("shop").start_as_current_span("own work", attributes={"pid": os.getpid()}):
        pass


@app.task(queue="threads")
def in_thread() -> None:
    body()


@app.task(queue="loop")
async def on_loop() -> None:
    body()


@app.task(queue="processes", process=True)
def in_process() -> None:
    body()
    in_thread.enqueue()


@app.task(queue="processes-loop", process=True, max_attempts=1)
async def in_process_on_loop() -> None:
    body()
    raise LookupError("nowhere")


@app.task(queue="deaths", process=True, max_attempts=1)
def dying() -> None:
    os._exit(7)
"""

TRACE = "0af7651916cd43dd8448eb211c80319c"
CONTEXT = json.dumps({"traceparent": f"00-{TRACE}-b7ad6b7169203331-01"})


def run_worker(folder: Path, url: str) -> tuple[str, dict[str, list[dict[str, Any]]]]:
    """The log, and the spans by name."""
    command = [sys.executable, "-m", "relet", "worker", "shop:app", "--until-idle", "--log-format", "json"]
    ran = forks.run(command, cwd=folder, env={**os.environ, "RELET_URL": url}, timeout=60)
    assert ran.returncode == 0, ran.stderr
    spans: dict[str, list[dict[str, Any]]] = {}
    for line in (folder / "spans").read_text().splitlines():
        span = json.loads(line)
        spans.setdefault(span["name"], []).append(span)
    return ran.stderr, spans


@pytest.mark.long
def test_the_trace_goes_on_in_threads_on_the_loop_and_in_child_processes(tmp_path: Path) -> None:
    (tmp_path / "shop.py").write_text(SHOP)
    url = f"sqlite:///{tmp_path / 'relet.db'}"
    app = App(url)
    app.client.migrate()
    queues = {"in_process": "processes", "in_process_on_loop": "processes-loop", "on_loop": "loop", "dying": "deaths"}
    once = Policy(max_attempts=1)
    drafts = [Draft[Any](new_id(), task, "{}", queue, context=CONTEXT, policy=once) for task, queue in queues.items()]
    app.client.enqueue_many(drafts)
    app.close()
    logged, spans = run_worker(tmp_path, url)

    runs = {span["attributes"]["relet.task"]: span for name in spans if "process" in name for span in spans[name]}
    assert runs.keys() == {*queues, "in_thread"}
    assert {span["context"]["trace_id"] for every in spans.values() for span in every} == {f"0x{TRACE}"}
    assert {runs[task]["parent_id"] for task in queues} == {"0xb7ad6b7169203331"}
    assert runs["in_thread"]["parent_id"] == spans["enqueue threads"][0]["context"]["span_id"]
    assert spans["enqueue threads"][0]["parent_id"] == runs["in_process"]["context"]["span_id"]

    own = {span["parent_id"]: span["attributes"]["pid"] for span in spans["own work"]}
    ids = {task: run["context"]["span_id"] for task, run in runs.items()}
    assert own.keys() == {ids[task] for task in ids if task != "dying"}
    assert own[ids["in_process"]] not in (own[ids["on_loop"]], os.getpid())
    assert own[ids["in_thread"]] == own[ids["on_loop"]]

    failed = runs["in_process_on_loop"]
    assert (failed["attributes"]["error.type"], failed["attributes"]["relet.outcome"]) == ("LookupError", "failed")
    assert failed["events"][0]["attributes"]["exception.type"] == "LookupError"
    assert "nowhere" in failed["events"][0]["attributes"]["exception.stacktrace"]
    assert runs["dying"]["attributes"]["error.type"] == "worker_lost"

    lines = [json.loads(line) for line in logged.splitlines()]
    at_work = {line["task"]: line for line in lines if line["message"] == "at work"}
    assert {task: (line["trace_id"], f"0x{line['span_id']}") for task, line in at_work.items()} == {
        task: (TRACE, ids[task]) for task in ids if task != "dying"
    }
    assert len({line["worker"] for line in at_work.values()}) == 1
