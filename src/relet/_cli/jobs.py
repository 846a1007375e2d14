"""`relet jobs shop:app`: list jobs, show one in detail, and change jobs."""

from __future__ import annotations

import argparse
from collections.abc import Callable
from typing import Any

from .._client.client import Client
from .._core.job import Job, StepRecord
from .._core.text import one_line, series
from .._core.verbs import BULK, VERBS
from ..errors import InvalidInput
from . import control, output
from .arguments import add_app, add_filters, add_words, decode, duration, filters, named_values
from .load_app import opened
from .short_ids import find_ids, is_id

#: Words of other queues for our verbs.
ALIASES = {"retry": "resume"}

HELP = """\
verbs:
  list                     list jobs that match the filters, newest first
  show ID                  show one job in detail; an ID alone does the same
  explain ID               explain why the job does not run
  attempts ID              list its attempts
  steps ID                 list its durable steps, sleeps, waits and signals
  chain ID                 list the jobs of its chain
  dependencies ID          list the jobs that it waits or waited for
  dependents ID            list the jobs that wait for its chain
  wait ID ...              wait until the jobs end; exit with 1 if one did not succeed
{verbs}
  signal ID NAME [JSON]    send a signal that its handler waits for
  rerun ID ...             enqueue each as a new job; --arg NAME=JSON replaces an argument

Without IDs, {in_bulk} change all jobs that match the filters, or with --all all jobs.
They print the number of jobs and ask for confirmation. An ID of - reads IDs from standard input. The end of an ID will
do, if no other recent job has it. retry is another word for resume."""


def add_to(commands: Any) -> None:
    parser: argparse.ArgumentParser = commands.add_parser(
        "jobs",
        help="list jobs, show one, or cancel, pause, resume, ... them",
        description="List jobs with their progress, newest first; show one in detail; or change jobs.",
        epilog=_help(),
        formatter_class=argparse.RawDescriptionHelpFormatter,
    )
    add_app(parser)
    add_words(parser, "ID", KNOWN)
    add_filters(parser)
    add = parser.add_argument
    add("--limit", type=int, default=20, metavar="N", help="list: number of jobs (default 20)")
    add("--cursor", metavar="ID", help="list: continue after this job")
    control.add_options(parser)
    add("--arg", action="append", default=[], metavar="NAME=JSON", help="rerun: another value for this argument")
    add("--timeout", type=duration, default=60.0, metavar="S", help="wait: longest time (default 60)")
    parser.set_defaults(run=run)
    explain: argparse.ArgumentParser = commands.add_parser(
        "explain", help="explain why a job does not run", description="Explain why a job does not run."
    )
    add_app(explain)
    explain.add_argument("id", metavar="ID", help="the ID of the job")
    explain.set_defaults(run=run_explain)


def _help() -> str:
    verbs = [f"  {verb.word + ' ID ...':<25}{verb.summary}" for verb in VERBS.values()]
    return HELP.format(verbs="\n".join(verbs), in_bulk=series([verb.word for verb in BULK.values()]))


def run(options: argparse.Namespace) -> int:
    """Run the verb. A job ID in place of a verb means `show`."""
    verb, *ids = options.words or ["list"]
    if verb not in KNOWN and is_id(verb):
        verb, ids = "show", [verb, *ids]
    verb = ALIASES.get(verb, verb)
    if verb not in KNOWN:
        raise InvalidInput(f"Unknown verb {verb!r}: use a job ID or one of {', '.join(KNOWN)}.")
    options.verb = verb
    with opened(options) as (_, client):
        whole = [*find_ids(client, ids[:1]), *ids[1:]] if verb == "signal" else find_ids(client, ids)
        return KNOWN[verb](client, options, whole)


def run_explain(options: argparse.Namespace) -> int:
    with opened(options) as (_, client):
        return explain(client, options, find_ids(client, [options.id]))


def list_jobs(client: Client, options: argparse.Namespace, ids: list[str]) -> int:
    if ids:
        raise InvalidInput(f"list takes filters, not IDs. To show one job: relet jobs {options.app} show ID")
    page = client.jobs(**filters(options), limit=options.limit, cursor=options.cursor)
    if options.json:
        output.as_json({"jobs": page.jobs, "cursor": page.cursor})
        return 0
    table_of(page.jobs)
    if page.cursor:
        print(f"more: --cursor {page.cursor}")
    return 0


def table_of(jobs: list[Job[Any]]) -> None:
    """Print jobs with their progress; on a narrow terminal with the ends of their ids, and their age."""
    if output.is_narrow():
        output.table(
            ("ID", "TASK", "QUEUE", "STATE", "TRY", "AGE", "PROGRESS"),
            [
                (output.short_id(job.id), job.task, job.queue, output.state(job), f"{job.attempt}/{job.max_attempts}",
                 output.since(job.created_at), output.progress(job.progress))
                for job in jobs
            ],
            one_line=True,
        )  # fmt: skip
        return
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
    """Print one job, its attempts and the whole error."""
    details = client.describe(_one(ids, options))
    job, attempts, chain, why = details.job, details.attempts, details.chain, details.explanation
    if options.json:
        document = {"job": job, "attempts": attempts, "steps": details.steps, "chain": list(chain), "explain": why}
        output.as_json(document)
        return 0
    output.facts(job_facts(job, why, [one.task for one in chain]))
    if attempts:
        print()
        _attempts_table(attempts)
    if details.steps:
        print()
        _steps_table(details.steps)
    if job.error and "\n" in job.error:
        print("\n" + output.lines(job.error))
    return 0


def job_facts(job: Job[Any], why: list[str], chain: list[str]) -> list[tuple[str, object]]:
    """Names and values that describe a job. A value that the job does not have is None."""
    return [
        ("id", job.id), ("task", job.task), ("queue", job.queue), ("priority", job.priority or None),
        ("state", output.state(job)), ("why", "; ".join(why)), ("progress", output.progress(job.progress) or None),
        ("payload", job.payload_json), ("result", job.result_json), ("error", one_line(job.error) or None),
        ("target", job.target), ("group", job.group), ("unique", job.unique),
        ("tags", ", ".join(job.tags) or None), ("rerun of", job.rerun_of), ("start by", job.start_by),
        ("attempt", f"{job.attempt} of {job.max_attempts}"),
        ("lost workers", job.losses or None), ("created", job.created_at), ("run at", job.run_at),
        ("started", job.started_at), ("ended", job.finished_at), ("worker", job.worker),
        ("lease renewed", job.renewed_at), ("lease until", job.expires_at), ("chain", " -> ".join(chain)),
    ]  # fmt: skip


def explain(client: Client, options: argparse.Namespace, ids: list[str]) -> int:
    why = client.explain(_one(ids, options))
    if options.json:
        output.as_json({"id": ids[0], "explain": why})
    else:
        print("\n".join(output.plain(sentence) for sentence in why))
    return 0


def attempts(client: Client, options: argparse.Namespace, ids: list[str]) -> int:
    found = client.attempts(_one(ids, options))
    if options.json:
        output.as_json({"attempts": found})
    else:
        _attempts_table(found)
    return 0


def steps(client: Client, options: argparse.Namespace, ids: list[str]) -> int:
    found = client.steps(_one(ids, options))
    if options.json:
        output.as_json({"steps": found})
    else:
        _steps_table(found)
    return 0


def _steps_table(found: list[StepRecord]) -> None:
    lines = [(one.kind, one.name, one.at, one.until, one.result_json) for one in found]
    output.table(("KIND", "NAME", "STORED (UTC)", "UNTIL (UTC)", "RESULT"), lines)


def chain(client: Client, options: argparse.Namespace, ids: list[str]) -> int:
    found = client.chain(_one(ids, options))
    if options.json:
        output.as_json({"id": found.id, "state": found.state, "result": found.result_json, "jobs": list(found)})
        return 0
    table_of(list(found))
    if found.result_json is not None:
        print(f"result: {output.plain(found.result_json)}")
    return 0


def dependencies(client: Client, options: argparse.Namespace, ids: list[str]) -> int:
    """Print the chains that the job waits or waited for."""
    found = client.dependencies(_one(ids, options))
    if options.json:
        output.as_json({"dependencies": found})
    else:
        lines = [(one.chain, one.task, one.state or "not finished", one.result_json) for one in found]
        output.table(("CHAIN", "TASK", "STATE", "RESULT"), lines)
    return 0


def dependents(client: Client, options: argparse.Namespace, ids: list[str]) -> int:
    """Print the jobs that wait for its chain."""
    found = client.dependents(_one(ids, options), limit=options.limit)
    if options.json:
        output.as_json({"jobs": found})
    else:
        table_of(found)
    return 0


def signal(client: Client, options: argparse.Namespace, words: list[str]) -> int:
    """Send a signal. Returns 1 if the job already has a signal of this name."""
    if len(words) not in (2, 3):
        raise InvalidInput('signal needs a job ID, a name and optionally JSON: signal ID approved \'{"by": "Ada"}\'')
    job_id, name, *value = words
    sent = client.signal(job_id, name, decode(value[0], "the value of a signal") if value else None)
    if options.json:
        output.as_json({"id": job_id, "signal": name, "sent": sent})
    else:
        text = "Signal sent." if sent else f'Signal "{name}" was sent before; the first value is kept.'
        print(output.plain(text))
    return 0 if sent else 1


def _attempts_table(found: list[Any]) -> None:
    heads = ("ATTEMPT", "WORKER", "STARTED (UTC)", "ENDED (UTC)", "OUTCOME", "ERROR")
    output.table(
        heads,
        [(one.attempt, one.worker, one.started_at, one.ended_at, one.outcome, one_line(one.error)) for one in found],
    )


def _one(ids: list[str], options: argparse.Namespace) -> str:
    if len(ids) == 1:
        return ids[0]
    raise InvalidInput(f"{options.words[0]} needs one job ID. List jobs: relet jobs {options.app}")


def rerun(client: Client, options: argparse.Namespace, ids: list[str]) -> int:
    """Enqueue each job as a new one, and print the new ids."""
    if not ids:
        raise InvalidInput(f"rerun needs job IDs. List jobs: relet jobs {options.app}")
    edited = named_values(options.arg) or None
    jobs = [client.rerun(job_id, arguments=edited) for job_id in ids]
    if options.json:
        output.as_json({"jobs": jobs})
    else:
        print("\n".join(job.id for job in jobs))
    return 0


KNOWN: dict[str, Callable[[Client, argparse.Namespace, list[str]], int]] = {
    "list": list_jobs, "show": show_job, "explain": explain, "attempts": attempts, "steps": steps, "chain": chain,
    "dependencies": dependencies, "dependents": dependents,
    "wait": control.wait, **dict.fromkeys(control.VERBS_BY_WORD, control.run), "signal": signal,
    "rerun": rerun,
}  # fmt: skip
