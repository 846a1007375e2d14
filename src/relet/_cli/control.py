"""Verbs that change jobs: the jobs with the IDs on the command line, or all jobs that match filters."""

from __future__ import annotations

import argparse
import sys
from collections.abc import Callable
from functools import partial
from typing import Any, cast

from .._client.client import Client
from .._core.ids import parse_id
from .._core.job import Job
from .._core.text import one_line, series
from .._core.verbs import VERBS, BulkVerb
from ..errors import InvalidInput, ReletError, StoreError
from . import output, progress
from .arguments import decode, describe, filters, read_text

VERBS_BY_WORD = {verb.word: verb for verb in VERBS.values()}


def add_options(parser: argparse.ArgumentParser) -> None:
    add = parser.add_argument_group("options of the verbs").add_argument
    add("--all", action="store_true", help="change all jobs that the verb applies to, without a filter")
    add("--yes", "-y", action="store_true", help="do not ask for confirmation")
    add("--chain", action="store_true", help="cancel, complete: the unfinished job of its chain; delete: the chain")
    add("--dependents", action="store_true", help="delete --chain: also the chains that wait for it")
    add("--result", metavar="JSON", help="complete: the result of the job")


def run(client: Client, options: argparse.Namespace, ids: list[str]) -> int:
    """Apply one verb."""
    which = filters(options)
    if ids and (which or options.all):
        raise InvalidInput(f"{options.verb} takes either job IDs or filters, not both.")
    _check_options(options, in_bulk=not ids)
    if ids:
        return _each(client, options, _read_ids(ids))
    if not VERBS_BY_WORD[options.verb].in_bulk:
        raise InvalidInput(f"{options.verb} needs job IDs. List jobs: relet jobs {options.app}")
    if not which and not options.all:
        raise InvalidInput(f"{options.verb} needs job IDs, filters (--state, --queue, --task, ...) or --all.")
    return _bulk(client, options, which)


def wait(client: Client, options: argparse.Namespace, ids: list[str]) -> int:
    """Wait until all jobs have ended, and print their states and results. Returns 1 if one did not succeed."""
    jobs = client.wait_many(_read_ids(ids), timeout=options.timeout)
    if options.json:
        output.as_json({"jobs": jobs})
    else:
        lines = [(job.id, job.task, job.state, job.result_json or one_line(job.error)) for job in jobs]
        output.table(("ID", "TASK", "STATE", "RESULT"), lines)
    return 0 if all(job.state == "succeeded" for job in jobs) else 1


def _each(client: Client, options: argparse.Namespace, ids: list[str]) -> int:
    """Apply the verb to each ID. A job that refuses it does not stop the others."""
    done: list[dict[str, object]] = []
    refused: list[dict[str, str]] = []
    lines: list[str] = []
    verb = _verb(client, options)
    try:
        with progress.stoppable() as check, progress.bar(options.verb, len(ids)) as advance:
            for job_id in ids:
                check()
                try:
                    job = verb(job_id)
                except StoreError:
                    raise
                except ReletError as error:
                    refused.append({"id": job_id, "why": str(error)})
                else:
                    done.append({"id": job_id, "state": None if job is None else str(job.state)})
                    lines.append(f"{job_id}  {'deleted' if job is None else output.state(job)}")
                advance(len(done) + len(refused))
    except KeyboardInterrupt:
        print(f"relet: Stopped: {len(done)} of {len(ids)} done, {len(refused)} refused.", file=sys.stderr)
        return progress.INTERRUPTED
    if options.json:
        output.as_json({"done": done, "refused": refused})
    for line in () if options.json else lines:
        print(line)
    for refusal in refused:
        print(f"relet: {output.plain(refusal['why'])}", file=sys.stderr)
    return 1 if refused else 0


def _verb(client: Client, options: argparse.Namespace) -> Callable[[str], Job[Any] | None]:
    """The call that applies the verb to one job."""
    verb = VERBS_BY_WORD[options.verb]
    act: Callable[..., Job[Any] | None] = getattr(client, verb.name)
    if verb.has_chain:
        act = partial(act, chain=options.chain)
    if verb.name == "complete":
        result = None if options.result is None else decode(options.result, "--result")
        return lambda job: act(job, result)
    return partial(act, dependents=options.dependents) if verb.name == "delete" else act


def _bulk(client: Client, options: argparse.Namespace, which: dict[str, Any]) -> int:
    """Apply the verb to all jobs that match the filters, after a confirmation."""
    verb, scope = VERBS_BY_WORD[options.verb], describe(which) or "all that it applies to"
    which.setdefault("state", [str(state) for state in sorted(verb.sources)])
    number = client.count(**which)
    if number == 0:
        return _report(options, number, 0, 0)
    jobs = "1 job" if number == 1 else f"{number:,} jobs"
    question = f"{options.verb} {jobs} ({output.plain(scope)}) in {client.where}?"
    if not progress.confirmed(question, yes=options.yes):
        print("Nothing was changed.", file=sys.stderr)
        return 1
    done = refused = 0
    try:
        with progress.stoppable() as check, progress.bar(f"{options.verb} {jobs}", number) as advance:

            def step(so_far: Any) -> None:
                nonlocal done, refused
                done, refused = so_far.done, so_far.refused
                advance(done + refused)
                check()

            ended = client.bulk(cast(BulkVerb, verb.name), **which, on_step=step)
            done, refused = ended.done, ended.refused
    except KeyboardInterrupt:
        print(f"relet: Stopped: {done} of {number} done, {refused} refused.", file=sys.stderr)
        return progress.INTERRUPTED
    return _report(options, number, done, refused)


def _report(options: argparse.Namespace, number: int, done: int, refused: int) -> int:
    if options.json:
        output.as_json({"action": options.verb, "matched": number, "done": done, "refused": refused})
    else:
        print(f"{options.verb}: {done} done, {refused} refused" if number else f"{options.verb}: no matching jobs")
    return 1 if refused else 0


def _read_ids(ids: list[str]) -> list[str]:
    if not ids:
        raise InvalidInput("No job IDs. Give them as arguments, or - to read them from standard input.")
    parsed: list[str] = []  # all IDs, before any change: an invalid one stops the command
    for word in ids:
        words = read_text("-").split() if word == "-" else [word]
        parsed += map(parse_id, words)
    return parsed


def _check_options(options: argparse.Namespace, *, in_bulk: bool) -> None:
    """Refuse an option that the verb does not use, instead of ignoring it."""
    if options.result is not None and options.verb != "complete":
        raise InvalidInput(f"--result works only with complete, not with {options.verb}.")
    if options.chain and (not VERBS_BY_WORD[options.verb].has_chain or in_bulk):
        with_chain = series([verb.word for verb in VERBS.values() if verb.has_chain], "or")
        raise InvalidInput(f"--chain works only with {with_chain}, and with job IDs.")
    if options.dependents and not (options.verb == "delete" and options.chain):
        raise InvalidInput("--dependents works only with delete --chain.")
