"""What a person does to jobs: to those that are named, or to all that filters let through."""

from __future__ import annotations

import argparse
import sys
from collections.abc import Callable
from typing import Any, cast

from .._client.client import Client
from .._core.ids import parse_id
from .._core.job import Job
from .._core.verbs import VERBS, BulkVerb
from ..errors import InvalidInput, ReletError, StoreError
from . import output, progress
from .arguments import decode, filters, read, told

WORDS = {verb.word: verb for verb in VERBS.values()}


def add_options(parser: argparse.ArgumentParser) -> None:
    """What goes with the verbs."""
    add = parser.add_argument_group("what is done with them").add_argument
    add("--all", action="store_true", help="with all jobs that the verb can be said to; no filter is needed then")
    add("--yes", "-y", action="store_true", help="do not ask")
    add("--chain", action="store_true", help="cancel, complete: that job of its chain which is not over; delete: all")
    add("--dependents", action="store_true", help="delete: the chains of all that wait for it as well; with --chain")
    add("--result", metavar="JSON", help="complete: with this result")


def run(client: Client, options: argparse.Namespace, ids: list[str]) -> int:
    """One verb."""
    which = filters(options)
    if ids and (which or options.all):
        raise InvalidInput(f"{options.verb} either the jobs that are named, or those of filters")
    _check_options(options, in_bulk=not ids)
    if ids:
        return _each(client, options, _from_pipe(ids))
    if not WORDS[options.verb].in_bulk:
        raise InvalidInput(f"{options.verb} which jobs? it is done by id: `relet jobs {options.app}` lists them")
    if not which and not options.all:
        raise InvalidInput(
            f"{options.verb} which jobs? name them, or say which: --state, --queue, --task, ...; --all for all"
        )
    return _bulk(client, options, which)


def wait(client: Client, options: argparse.Namespace, ids: list[str]) -> int:
    """Until all of them are over: their states and results; 1 if one has not succeeded."""
    jobs = client.wait_many(_from_pipe(ids), timeout=options.timeout)
    if options.json:
        output.as_json({"jobs": jobs})
    else:
        lines = [(job.id, job.task, job.state, job.result_json or output.first_line(job.error)) for job in jobs]
        output.table(("ID", "TASK", "STATE", "RESULT"), lines)
    return 0 if all(job.state == "succeeded" for job in jobs) else 1


def _each(client: Client, options: argparse.Namespace, ids: list[str]) -> int:
    """Those that are named, one by one; the others are not kept from it by one that is refused."""
    done: list[dict[str, object]] = []
    refused: list[dict[str, str]] = []
    shown: list[str] = []
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
                    shown.append(f"{job_id}  {'deleted' if job is None else output.state(job)}")
                advance(len(done) + len(refused))
    except KeyboardInterrupt:
        print(f"relet: stopped; {len(done)} of {len(ids)} done, {len(refused)} refused", file=sys.stderr)
        return progress.INTERRUPTED
    if options.json:
        output.as_json({"done": done, "refused": refused})
    for line in () if options.json else shown:
        print(line)
    for two in refused:
        print(f"relet: {output.plain(two['why'])}", file=sys.stderr)
    return 1 if refused else 0


def _verb(client: Client, options: argparse.Namespace) -> Callable[[str], Job[Any] | None]:
    """What is done with one job."""
    chain: bool = options.chain
    if options.verb == "complete":
        result = None if options.result is None else decode(options.result, "--result")
        return lambda job: client.complete(job, result, chain=chain)
    if options.verb == "cancel":
        return lambda job: client.cancel(job, chain=chain)
    if options.verb == "delete":
        return lambda job: client.delete(job, chain=chain, dependents=options.dependents)
    act: Callable[[str], Job[Any]] = getattr(client, WORDS[options.verb].name)
    return act


def _bulk(client: Client, options: argparse.Namespace, which: dict[str, Any]) -> int:
    """All that the filters let through, after a question."""
    verb, asked = WORDS[options.verb], told(which) or "all that it can be said to"
    which.setdefault("state", [str(state) for state in sorted(verb.sources)])
    number = client.count(**which)
    if number == 0:
        return _said(options, number, 0, 0)
    jobs = "1 job" if number == 1 else f"{number:,} jobs"
    question = f"{options.verb} {jobs} ({output.plain(asked)}) in {client.where}?"
    if not progress.confirmed(question, yes=options.yes):
        print("nothing was changed", file=sys.stderr)
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
        print(f"relet: stopped; {done} of {number} done, {refused} refused", file=sys.stderr)
        return progress.INTERRUPTED
    return _said(options, number, done, refused)


def _said(options: argparse.Namespace, number: int, done: int, refused: int) -> int:
    if options.json:
        output.as_json({"action": options.verb, "matched": number, "done": done, "refused": refused})
    else:
        print(f"{options.verb}: {done} done, {refused} refused" if number else f"{options.verb}: no such job")
    return 1 if refused else 0


def _from_pipe(ids: list[str]) -> list[str]:
    if not ids:
        raise InvalidInput("which jobs? name them, or pipe their ids in and say -")
    # All of them are looked at before anything is done.
    return [parse_id(word) for given in ids for word in (read("-").split() if given == "-" else [given])]


def _check_options(options: argparse.Namespace, *, in_bulk: bool) -> None:
    """An option that does not belong to the verb is refused, not ignored."""
    if options.result is not None and options.verb != "complete":
        raise InvalidInput(f"--result is for complete, not for {options.verb}")
    if options.chain and (not WORDS[options.verb].has_chain or in_bulk):
        raise InvalidInput("--chain is for cancel, complete and delete of jobs that are named")
    if options.dependents and not (options.verb == "delete" and options.chain):
        raise InvalidInput("--dependents is for delete --chain")
