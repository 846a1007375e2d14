"""Endpoints that enqueue, find, show and control single jobs."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any, cast

from msgspec import UNSET, UnsetType

from ..._core.filters import FILTERS, Which
from ..._core.job import Job
from ..._core.redact import redacted
from ..._core.verbs import VERBS, Verb
from ...errors import InvalidPayload, JobNotFound
from ..problems import Fault, Refusal, invalid
from . import requests, responses
from .drafts import draft_of
from .endpoint import Call, Endpoint, Result, at, base
from .parsing import rfc3339_time

_NO_JOB = {404: "There is no such job; it may have been deleted or pruned"}
_STATE = {409: "The state of the job does not allow this"}
_CHANGED = {200: "The job as it is now", **_NO_JOB, **_STATE}


@at(
    "POST /jobs",
    "operate",
    responses.JobOut,
    {
        200: "The job that already existed under this id or unique key",
        201: "The job that was enqueued",
        409: "The job cannot wait for the jobs in `depends_on`",
    },
    body=requests.JobIn,
)
def enqueue(call: Call, _: None, body: requests.JobIn) -> Result:
    """Enqueue a job.

    The payload is validated by the annotations of the task, which must belong to this app (`GET /tasks`). With an `id`
    that you choose, a UUIDv7, the request can be repeated: it returns the existing job, with `existing` set to true.
    """
    (job,) = _enqueued(call, [draft_of(call, body, "body")], ["body"])
    headers = {} if job.existing else {"Location": f"{base(call.root)}/jobs/{job.id}"}
    return Result(responses.job_out(job, call.redact), 200 if job.existing else 201, headers)


@at(
    "POST /jobs/batch",
    "operate",
    responses.Jobs,
    {
        200: "All of the jobs existed already",
        201: "The jobs, in the order of the request",
        409: "A job cannot wait for the jobs in its `depends_on`",
    },
    body=requests.BatchIn,
)
def enqueue_many(call: Call, _: None, body: requests.BatchIn) -> Result:
    """Enqueue up to 1000 jobs, all or none.

    They may refer to each other in `depends_on`, by ids that you choose.
    """
    paths = [f"body.jobs[{number}]" for number in range(len(body.jobs))]
    drafts = [draft_of(call, one, where) for one, where in zip(body.jobs, paths, strict=True)]
    jobs = _enqueued(call, drafts, paths)
    return Result(
        responses.Jobs(responses.jobs_out(jobs, call.redact)), 200 if all(job.existing for job in jobs) else 201
    )


@at(
    "GET /jobs",
    "read",
    responses.JobPage,
    {200: "A page of jobs, newest first, and the cursor of the next page"},
    query=requests.JobsQuery,
)
def list_jobs(call: Call, query: requests.JobsQuery, _: None) -> responses.JobPage:
    """Find jobs, newest first.

    `state` may be repeated. A page reads a limited number of jobs (`scan`): it may be short, or empty, although more
    jobs match. As long as `next` is not null, pass it as `cursor` to continue.
    """
    page = call.client.jobs(
        limit=query.limit,
        cursor=None if query.cursor is UNSET else query.cursor,
        scan=_scan(call, query.scan, call.limits.page_scan),
        **which(query, "query"),
    )
    return responses.JobPage(responses.jobs_out(page.jobs, call.redact), page.cursor)


@at("GET /jobs/count", "read", responses.Counted, {200: "How many there are"}, query=requests.CountQuery)
def count_jobs(call: Call, query: requests.CountQuery, _: None) -> responses.Counted:
    """Count jobs, up to 10,001."""
    scan = _scan(call, query.scan, call.limits.count_scan)
    number = call.client.count(limit=query.limit, scan=scan, **which(query, "query"))
    return responses.Counted(number, query.limit, scan)


@at("GET /jobs/{id}", "read", responses.JobView, {200: "The job and its history", **_NO_JOB})
def show_job(call: Call, _: None, __: None) -> responses.JobView:
    """Show one job: its attempts, what it waits for, what waits for it, and why it does not run."""
    return responses.job_view(call.client.describe(call.path["id"]), call.redact)


@at("GET /jobs/{id}/attempts", "read", responses.Attempts, {200: "Its attempts, in order", **_NO_JOB})
def list_attempts(call: Call, _: None, __: None) -> responses.Attempts:
    """List every attempt of a job, including the running one."""
    return responses.Attempts(redacted(call.client.attempts(call.path["id"]), call.redact))


@at("GET /jobs/{id}/steps", "read", responses.Steps, {200: "Its steps, sleeps, waits and signals", **_NO_JOB})
def list_steps(call: Call, _: None, __: None) -> responses.Steps:
    """List the durable steps of a job with its sleeps, waits and signals."""
    return responses.Steps(responses.steps_out(call.client.steps(call.path["id"]), call.redact))


@at("GET /jobs/{id}/explain", "read", responses.Reasons, {200: "The reasons, the nearest first", **_NO_JOB})
def explain_job(call: Call, _: None, __: None) -> responses.Reasons:
    """Explain in sentences why a job does not run."""
    return responses.Reasons(redacted(call.client.explain(call.path["id"]), call.redact))


@at("GET /jobs/{id}/chain", "read", responses.ChainOut, {200: "Its chain", **_NO_JOB})
def show_chain_of_job(call: Call, _: None, __: None) -> responses.ChainOut:
    """Show the chain that a job belongs to."""
    return responses.chain_out(call.client.chain(call.path["id"]), call.redact)


def _endpoint_of(verb: Verb) -> Endpoint:
    """The endpoint of a verb that needs only the job."""

    def change(call: Call, _: None, __: None) -> responses.JobOut:
        return responses.job_out(getattr(call.client, verb.name)(call.path["id"]), call.redact)

    change.__name__ = f"{verb.name}_job"
    change.__doc__ = f"{verb.summary[0].upper()}{verb.summary[1:]}.\n\n{verb.note}"
    return at(f"POST /jobs/{{id}}/{verb.word}", "operate", responses.JobOut, _CHANGED)(change)


_WITH_OPTIONS = ("complete", "delete")  # verbs whose endpoints are below


@at("POST /jobs/{id}/complete", "operate", responses.JobOut, _CHANGED, body=requests.CompletionIn)
def complete_job(call: Call, _: None, body: requests.CompletionIn) -> responses.JobOut:
    """Complete a job from outside, with a result, or by continuing its chain with another job."""
    return completed(call, body, chain=False)


@at(
    "POST /jobs/{id}/signal",
    "operate",
    responses.SignalOut,
    {200: "Whether this signal was new", **_NO_JOB, **_STATE},
    body=requests.SignalIn,
)
def signal_job(call: Call, _: None, body: requests.SignalIn) -> responses.SignalOut:
    """Send a job a signal, for which its handler waits or will wait later."""
    with refused_at("body.value", f"signal {body.name!r}"):
        return responses.SignalOut(call.client.signal(call.path["id"], body.name, body.value))


@at(
    "POST /jobs/{id}/rerun",
    "operate",
    responses.JobOut,
    {201: "The new job", **_NO_JOB},
    body=requests.RerunIn,
)
def rerun_job(call: Call, _: None, body: requests.RerunIn) -> Result:
    """Enqueue a new job with the arguments of this one. The job itself stays as it is."""
    with refused_at("body.arguments", "the arguments"):
        job = call.client.rerun(call.path["id"], arguments=body.arguments)
    headers = {"Location": f"{base(call.root)}/jobs/{job.id}"}
    return Result(responses.job_out(job, call.redact), 201, headers)


@at(
    "DELETE /jobs/{id}",
    "operate",
    None,
    {204: "The job is deleted", **_NO_JOB, 409: "Other jobs wait for its chain"},
    query=requests.DeleteQuery,
)
def delete_job(call: Call, query: requests.DeleteQuery, _: None) -> Result:
    """Delete a job and its history, in any state.

    With `chain`, delete all jobs of its chain; with `dependents` as well, the chains of all jobs that wait for it.
    """
    if query.dependents and not query.chain:
        raise invalid([Fault("query.dependents", "needs chain=true, because dependents wait for chains")])
    call.client.delete(call.path["id"], chain=query.chain, dependents=query.dependents)
    return Result(None, 204)


ENDPOINTS = [
    enqueue, enqueue_many, list_jobs, count_jobs, show_job, list_attempts, list_steps, explain_job, show_chain_of_job,
    *(_endpoint_of(verb) for verb in VERBS.values() if verb.name not in _WITH_OPTIONS),
    complete_job, signal_job, rerun_job, delete_job,
]  # fmt: skip


def _scan(call: Call, requested: int | UnsetType, default: int) -> int:
    """How many jobs to read. Readers get less than operators, because other requests wait for a long search."""
    if requested is UNSET:
        return default
    if requested > call.limits.max_scan:
        raise invalid([Fault("query.scan", f"must be at most {call.limits.max_scan} with a token of this role")])
    return requested


def which(asked: requests.Filter, where: str) -> Which:
    """A filter as keyword arguments of the client."""
    criteria: dict[str, Any] = {name: getattr(asked, name) for name in FILTERS if getattr(asked, name) is not UNSET}
    for name, value in criteria.items():
        if FILTERS[name].is_time:
            criteria[name] = rfc3339_time(value, f"{where}.{name}")
    if not criteria.get("state", True):
        del criteria["state"]
    return cast(Which, criteria)


def existing(call: Call) -> Job[Any]:
    """The job that the path names."""
    job = call.client.get(call.path["id"])
    if job is None:
        raise JobNotFound(call.path["id"])
    return job


def completed(call: Call, body: requests.CompletionIn, *, chain: bool) -> responses.JobOut:
    """Complete a job, or the one of its chain that is not over yet."""
    following = None if body.continue_with is None else draft_of(call, body.continue_with, "body.continue_with")
    with refused_at("body.result", "result"):
        job = call.client.complete(call.path["id"], body.result, continue_with=following, chain=chain)
    return responses.job_out(job, call.redact)


@contextmanager
def refused_at(where: str, path: str) -> Iterator[None]:
    """Report a value that cannot be stored at its field in the request. The client names that field `path`."""
    try:
        yield
    except InvalidPayload as error:
        rest = error.path.removeprefix(path) if error.path.startswith(path) else ""
        raise invalid([Fault(where + rest, error.problem)]) from None


def _enqueued(call: Call, drafts: list[Any], paths: list[str]) -> list[Job[Any]]:
    try:
        return call.client.enqueue_many(drafts)
    except JobNotFound as error:
        gone = set(error.ids)
        faults: list[Fault] = []
        for draft, path in zip(drafts, paths, strict=True):
            missing = [id for id in draft.depends_on if id in gone]
            faults += [Fault(f"{path}.depends_on", f"there is no job {id}") for id in missing]
        raise (invalid(faults) if faults else Refusal("not-found", str(error))) from None
