"""`relet jobs shop:app`: which jobs there are, all about one of them, and what a person can do to them."""

from __future__ import annotations

import argparse
import re
from collections.abc import Callable
from typing import Any

from .._client.client import Client
from .._core.job import Job
from ..errors import InvalidInput, JobNotFound
from . import control, output
from .arguments import add_app, add_filters, add_words, decode, duration, filters
from .load_app import opened

UUID = re.compile(r"[0-9a-fA-F]{8}(-[0-9a-fA-F]{4}){3}-[0-9a-fA-F]{12}", re.ASCII)

VERBS = """\
verbs:
  list                     those that the filters let through, newest first
  show ID                  all about one of them; an ID alone is the same
  explain ID               why it does not run
  attempts ID              every attempt of it
  chain ID                 the jobs of its chain
  blockers ID              what it waits or waited for
  dependents ID            what waits for its chain
  wait ID ...              until they are over; exits with 1 if one has not succeeded
  cancel ID ...            end them; running ones are asked to end
  pause ID ...             hold them back; running ones are asked to stop
  resume ID ...            let paused or failed ones go on, with their attempts anew
  run-now ID ...           make those that wait for their time due
  complete ID ...          succeed them from outside, with --result
  delete ID ...            remove them and their history
  signal ID NAME [JSON]    tell it something that its handler waits for

cancel, pause, resume, run-now and delete without IDs are done with all jobs that the filters let through, or with
--all; how many that are is asked first. An ID of - reads IDs from what is piped in."""


def add_to(commands: Any) -> None:
    """The arguments of the command."""
    parser: argparse.ArgumentParser = commands.add_parser(
        "jobs",
        help="list jobs, show one, or steer them: cancel, pause, resume, ...",
        description="List jobs, newest first, with their progress; show one in detail; or do something with them.",
        epilog=VERBS,
        formatter_class=argparse.RawDescriptionHelpFormatter,
    )
    add_app(parser)
    add_words(parser, "ID", KNOWN)
    add_filters(parser)
    add = parser.add_argument
    add("--limit", type=int, default=20, metavar="N", help="list so many (default 20)")
    add("--before", metavar="ID", help="list what comes after this job")
    control.add_options(parser)
    add("--timeout", type=duration, default=60.0, metavar="S", help="wait no longer (default 60)")
    parser.set_defaults(run=run)
    explain: argparse.ArgumentParser = commands.add_parser(
        "explain", help="why a job does not run", description="Why a job does not run, in sentences."
    )
    add_app(explain)
    explain.add_argument("id", metavar="ID", help="which job")
    explain.set_defaults(run=run_explain)


def run(options: argparse.Namespace) -> int:
    """Look or do, print, done."""
    verb, *ids = options.words or ["list"]
    if UUID.fullmatch(verb):
        verb, ids = "show", [verb, *ids]
    if verb not in KNOWN:
        raise InvalidInput(f"{verb!r} is neither a job's id nor one of {', '.join(KNOWN)}")
    options.verb = verb
    with opened(options) as (_, client):
        return KNOWN[verb](client, options, ids)


def run_explain(options: argparse.Namespace) -> int:
    """`relet explain APP ID`."""
    with opened(options) as (_, client):
        return explain(client, options, [options.id])


def list_jobs(client: Client, options: argparse.Namespace, ids: list[str]) -> int:
    """A page of them."""
    if ids:
        raise InvalidInput(f"list takes filters, not ids; `relet jobs {options.app} show ID` shows one")
    page = client.jobs(**filters(options), limit=options.limit, before=options.before)
    if options.json:
        output.as_json({"jobs": page.jobs, "next": page.next})
        return 0
    table_of(page.jobs)
    if page.next:
        print(f"more: --before {page.next}")
    return 0


def table_of(jobs: list[Job[Any]]) -> None:
    """Jobs with their progress."""
    heads = ("ID", "TASK", "QUEUE", "STATE", "ATTEMPT", "CREATED (UTC)", "PROGRESS")
    output.table(
        heads,
        [
            (job.id, job.task, job.queue, output.state(job), f"{job.attempt}/{job.max_attempts}", job.created_at,
             output.progress(job.progress))
            for job in jobs
        ],
    )  # fmt: skip


def show_job(client: Client, options: argparse.Namespace, ids: list[str]) -> int:
    """All about one."""
    job = client.get(_one(ids, options))
    if job is None:
        raise JobNotFound(ids[0])
    attempts, chain, why = client.attempts(job), client.chain(job), client.explain(job)
    if options.json:
        output.as_json({"job": job, "attempts": attempts, "chain": list(chain), "explain": why})
        return 0
    output.facts(job_facts(job, why, [one.task for one in chain]))
    if attempts:
        print()
        _attempts_table(attempts)
    if job.error and "\n" in job.error:
        print("\n" + output.lines(job.error))
    return 0


def job_facts(job: Job[Any], why: list[str], chain: list[str]) -> list[tuple[str, object]]:
    """What there is to say of a job; None of what there is not."""
    return [
        ("id", job.id), ("task", job.task), ("queue", job.queue), ("priority", job.priority or None),
        ("state", output.state(job)), ("why", "; ".join(why)), ("progress", output.progress(job.progress) or None),
        ("payload", job.payload_json), ("result", job.result_json), ("error", output.first_line(job.error) or None),
        ("target", job.target), ("key", job.key), ("unique", job.unique),
        ("attempt", f"{job.attempt} of {job.max_attempts}"),
        ("lost workers", job.losses or None), ("created", job.created_at), ("run at", job.run_at),
        ("started", job.started_at), ("ended", job.finished_at), ("worker", job.worker),
        ("lease renewed", job.renewed_at), ("lease until", job.expires_at), ("chain", " -> ".join(chain)),
    ]  # fmt: skip


def explain(client: Client, options: argparse.Namespace, ids: list[str]) -> int:
    """Why it does not run."""
    why = client.explain(_one(ids, options))
    if options.json:
        output.as_json({"id": ids[0], "explain": why})
    else:
        print("\n".join(output.plain(sentence) for sentence in why))
    return 0


def attempts(client: Client, options: argparse.Namespace, ids: list[str]) -> int:
    """Every attempt."""
    found = client.attempts(_one(ids, options))
    if options.json:
        output.as_json({"attempts": found})
    else:
        _attempts_table(found)
    return 0


def chain(client: Client, options: argparse.Namespace, ids: list[str]) -> int:
    """Its chain."""
    found = client.chain(_one(ids, options))
    if options.json:
        output.as_json({"id": found.id, "state": found.state, "result": found.result_json, "jobs": list(found)})
        return 0
    table_of(list(found))
    if found.result_json is not None:
        print(f"result: {output.plain(found.result_json)}")
    return 0


def blockers(client: Client, options: argparse.Namespace, ids: list[str]) -> int:
    """What it waits for."""
    found = client.blockers(_one(ids, options))
    if options.json:
        output.as_json({"blockers": found})
    else:
        lines = [(one.chain, one.task, one.state or "not over", one.result_json) for one in found]
        output.table(("CHAIN", "TASK", "STATE", "RESULT"), lines)
    return 0


def dependents(client: Client, options: argparse.Namespace, ids: list[str]) -> int:
    """What waits for it."""
    found = client.dependents(_one(ids, options), limit=options.limit)
    if options.json:
        output.as_json({"jobs": found})
    else:
        table_of(found)
    return 0


def signal(client: Client, options: argparse.Namespace, words: list[str]) -> int:
    """Tell it something."""
    if len(words) not in (2, 3):
        raise InvalidInput('a signal has a job, a name and perhaps a value: signal ID approved \'{"by": "Ada"}\'')
    job_id, name, *value = words
    told = client.signal(job_id, name, decode(value[0], "the value of a signal") if value else None)
    if options.json:
        output.as_json({"id": job_id, "signal": name, "told": told})
    else:
        print("told" if told else output.plain(f"it was told something of {name} before, and that stays"))
    return 0 if told else 1


def _attempts_table(found: list[Any]) -> None:
    heads = ("ATTEMPT", "WORKER", "STARTED (UTC)", "ENDED (UTC)", "OUTCOME", "ERROR")
    output.table(
        heads,
        [
            (one.attempt, one.worker, one.started_at, one.ended_at, one.outcome, output.first_line(one.error))
            for one in found
        ],
    )


def _one(ids: list[str], options: argparse.Namespace) -> str:
    if len(ids) == 1:
        return ids[0]
    which = "which job?" if not ids else "one job at a time;"
    raise InvalidInput(f"{options.words[0]} {which} `relet jobs {options.app}` lists them")


KNOWN: dict[str, Callable[[Client, argparse.Namespace, list[str]], int]] = {
    "list": list_jobs, "show": show_job, "explain": explain, "attempts": attempts, "chain": chain, "blockers": blockers,
    "dependents": dependents,
    "wait": control.wait, **dict.fromkeys(control.WORDS, control.run), "signal": signal,
}  # fmt: skip
