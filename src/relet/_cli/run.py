"""`relet run shop:app JOB`: run one job in this terminal, for example with a breakpoint in its handler."""

from __future__ import annotations

import argparse
from typing import Any

from .. import logs
from .._client.client import Client
from .._core.job import AttemptRecord, Job, State
from .._core.text import duration, one_line
from .._worker.foreground import Foreground, Ran
from ..errors import JobNotFound
from . import output, progress
from .arguments import add_app
from .load_app import opened, who
from .short_ids import find_ids

NOTES = """\
The job runs in the main thread of this process, so that breakpoint() opens a debugger here. It has a lease like any
other running job: no worker runs it at the same time. Its timeout does not apply. Pauses of its queue do not apply,
limits do.

A paused or failed job is resumed first, and a job that waits for its time is made due. Ctrl-C, or q in the debugger,
gives the job back: a job that was paused or failed is paused then, any other is queued.

exit codes: 0 the handler ended without an error, 1 it failed, or the job cannot run, 130 interrupted"""


def add_to(commands: Any) -> None:
    parser: argparse.ArgumentParser = commands.add_parser(
        "run",
        help="run one job here, for a debugger",
        description="Run one job in this terminal.",
        epilog=NOTES,
        formatter_class=argparse.RawDescriptionHelpFormatter,
    )
    add_app(parser)
    add = parser.add_argument
    add("job", metavar="JOB", help="the id of the job, or the end of its id")
    add("--lease", type=float, default=30.0, metavar="S", help="seconds until the lease expires if this process dies "
        "(default 30)")  # fmt: skip
    add("--log-level", default="info", choices=("debug", "info", "warning"), help="lowest level to log (default info)")
    parser.set_defaults(run=run)


def run(options: argparse.Namespace) -> int:
    """Run the job, and print how the attempt ended and what happens next."""
    with opened(options) as (app, client):
        logs.configure(options.log_level, as_json=False)
        (job_id,) = find_ids(client, [options.job])
        job = client.get(job_id)
        if job is None:
            raise JobNotFound(job_id)
        ran = Foreground(app, options.tenant, options.lease).run(job, who())
        return _report(client, options, job_id, ran)


def _report(client: Client, options: argparse.Namespace, job_id: str, ran: Ran) -> int:
    job = client.get(job_id)
    ended = next((one for one in client.attempts(job_id) if one.version == ran.version), None)
    outcome = "lost" if ended is None or ended.ended_at is None else ended.outcome
    if options.json:
        output.as_json({"job": job, "outcome": outcome, "seconds": ran.seconds})
    else:
        print(_how(job, ended, outcome, ran))
        app = options.app if options.tenant is None else f"{options.app} --tenant {options.tenant}"
        if job is not None and (following := _next(job, app)):
            print(following)
    if ran.was_interrupted:
        return progress.INTERRUPTED
    return 1 if outcome in ("failed", "retried", "lost") else 0


def _how(job: Job[Any] | None, ended: AttemptRecord | None, outcome: str, ran: Ran) -> str:
    """How the attempt ended."""
    after = f"after {duration(ran.seconds)}"
    if job is None:
        return f"The job was deleted meanwhile. The attempt ended {after}, and its outcome is not recorded."
    if ended is None or outcome == "lost":
        return f"The lease was lost meanwhile. The attempt ended {after}, and its outcome is not recorded."
    if outcome == "succeeded":
        return f"Succeeded {after}. Result: {output.plain(job.result_json)}"
    if outcome in ("failed", "retried"):
        error = output.plain(one_line(ended.error))
        return f"Attempt {ended.attempt} of {ran.max_attempts} failed {after}: {error}"
    return f"{'Interrupted' if ran.was_interrupted else outcome.capitalize()} {after}. The attempt does not count."


def _next(job: Job[Any], app: str) -> str:
    """The next step of the job, and how the operator can change it."""
    here, resume = f"relet run {app} {job.id}", f"relet jobs {app} resume {job.id}"
    if job.state is State.PENDING:
        wait = f"in {output.until(job.run_at)}" if job.awaits is None else f"once signal {job.awaits} arrives"
        return f"The job is pending. A worker runs it {wait}. To run it here again: {here}"
    if job.state is State.QUEUED:
        return f"The job is queued, so that any worker may run it. To prevent that: relet jobs {app} pause {job.id}"
    if job.state in (State.PAUSED, State.FAILED):
        return f"The job is {job.state}. To run it here again: {here} - to let a worker run it: {resume}"
    return "" if job.state is State.SUCCEEDED else f"The job is {job.state}."
