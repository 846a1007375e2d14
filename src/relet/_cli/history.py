"""The past: `relet failures`, `relet stats` and `relet audit`."""

from __future__ import annotations

import argparse
from collections.abc import Sequence
from typing import Any

from .._core.job import AttemptOutcome
from ..types import AuditEntry
from . import output
from .arguments import add_app, duration, past_time
from .load_app import opened


def add_to(commands: Any) -> None:
    failures: argparse.ArgumentParser = commands.add_parser(
        "failures", help="list failed jobs by error", description="List failed jobs, grouped by task and error."
    )
    add_app(failures)
    failures.add_argument("--limit", type=int, default=50, metavar="N", help="number of groups (default 50)")
    failures.set_defaults(run=run_failures)

    stats: argparse.ArgumentParser = commands.add_parser(
        "stats",
        help="count attempts by outcome, with wait and run times",
        description="Count attempts by outcome over time, and show how long jobs waited and ran.",
    )
    add_app(stats)
    add = stats.add_argument
    add("--since", type=past_time, default="1h", metavar="WHEN", help="start: 2h, 3d, 2026-11-16 (default 1h)")
    add("--until", type=past_time, metavar="WHEN", help="end (default now)")
    add("--step", type=duration, metavar="S", help="length of a step: 1m, 10m, 1h or 6h (default: chosen by the span)")
    add("--queue", metavar="NAME", help="only this queue")
    add("--totals", action="store_true", help="totals over all time, one line per queue")
    stats.set_defaults(run=run_stats)

    audit: argparse.ArgumentParser = commands.add_parser(
        "audit", help="list who changed what", description="List who changed what, the latest first."
    )
    add_app(audit)
    audit.add_argument("--limit", type=int, default=50, metavar="N", help="number of entries (default 50)")
    audit.add_argument("--cursor", metavar="ID", help="continue after this entry, which the last line names")
    audit.set_defaults(run=run_audit)


def run_failures(options: argparse.Namespace) -> int:
    """Print groups of failed jobs, each with the ID of an example."""
    with opened(options) as (_, client):
        found = client.failures(limit=options.limit)
    if options.json:
        output.as_json({"failures": found})
        return 0
    lines = [(one.number, one.task, one.last_at, one.example, one.error) for one in found]
    output.table(("JOBS", "TASK", "LATEST (UTC)", "EXAMPLE", "ERROR"), lines)
    return 0


def run_stats(options: argparse.Namespace) -> int:
    """Print one line for each step and queue, or totals."""
    with opened(options) as (_, client):
        if options.totals:
            found = [one for one in client.totals() if options.queue in (None, one.queue)]
        else:
            span = {"since": options.since, "until": options.until}
            step = None if options.step is None else int(options.step)
            found = client.stats(**span, step=step, queue=options.queue)
    if options.json:
        output.as_json({"stats": found})
        return 0
    ended = [name for name in AttemptOutcome if name.is_common or _any(found, name)]
    times = ("WAIT P50", "WAIT P95", "RUN P50", "RUN P95", "BACKLOG", "OLDEST")
    heads = (*(() if options.totals else ("FROM (UTC)",)), "QUEUE", *(name.upper() for name in ended), *times)
    lines = []
    for one in found:
        when = () if options.totals else (one.at,)
        took = [output.seconds(part.quantile(q)) for part in (one.waits, one.runs) for q in (0.5, 0.95)]
        backlog = (_whole(one.gauges.get("queued")), output.seconds(one.gauges.get("oldest")))
        lines.append((*when, one.queue, *(one.counts.get(name, 0) for name in ended), *took, *backlog))
    output.table(heads, lines)
    return 0


def run_audit(options: argparse.Namespace) -> int:
    """Print a page of the audit trail."""
    with opened(options) as (_, client):
        page = client.audit(limit=options.limit, cursor=options.cursor)
    if options.json:
        output.as_json({"entries": page.entries, "cursor": page.cursor})
        return 0
    lines = [(one.at, one.who, one.what, one.subject, _detail(one)) for one in page.entries]
    output.table(("AT (UTC)", "WHO", "WHAT", "SUBJECT", "DETAIL"), lines)
    if page.cursor is not None:
        print(f"more: --cursor {page.cursor}")
    return 0


def _detail(entry: AuditEntry) -> str:
    return ", ".join(f"{name} {value}" for name, value in entry.detail.items())


def _whole(number: float | None) -> int | None:
    return None if number is None else int(number)


def _any(points: Sequence[Any], name: str) -> bool:
    return any(point.counts.get(name) for point in points)
