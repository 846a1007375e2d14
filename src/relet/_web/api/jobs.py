"""Jobs: enqueued, found, looked at, and steered one by one."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any, cast

from msgspec import UNSET, UnsetType

from ..._client.inspection import Which
from ..._core.job import Job
from ..._core.redact import redacted
from ...errors import InvalidPayload, JobNotFound
from ..problems import Fault, Refusal, invalid
from . import requests, responses
from .drafts import draft_of
from .endpoint import Call, Result, at, base
from .parsing import moment

_NO_JOB = {404: "There is no such job: it never was, was deleted, or was pruned"}
_STATE = {409: "The state of the job does not allow this"}
_CHANGED = {200: "The job as it is now", **_NO_JOB, **_STATE}


@at(
    "POST /jobs",
    "operate",
    responses.JobOut,
    {
        200: "The job that was there already, under this id or unique key",
        201: "The job that was enqueued",
        409: "The job cannot wait for those that it names",
    },
    body=requests.JobIn,
)
def enqueue(call: Call, _: None, body: requests.JobIn) -> Result:
    """Enqueue a job.

    The payload is checked by the annotations of the task, which must be one of this app (`GET /tasks`). With an `id`
    of your own, a UUIDv7, the request can be repeated: a job that is there is returned, and `existing` is true.
    """
    (job,) = _enqueued(call, [draft_of(call, body, "body")], ["body"])
    headers = {} if job.existing else {"Location": f"{base(call.root)}/jobs/{job.id}"}
    return Result(responses.job_out(job, call.redact), 200 if job.existing else 201, headers)


@at(
    "POST /jobs/batch",
    "operate",
    responses.Jobs,
    {
        200: "All of the jobs were there already",
        201: "The jobs, in the order given",
        409: "A job cannot wait for those that it names",
    },
    body=requests.BatchIn,
)
def enqueue_many(call: Call, _: None, body: requests.BatchIn) -> Result:
    """Enqueue up to 1000 jobs, all or none.

    They may name each other in `after`, by ids of your own.
    """
    places = [f"body.jobs[{number}]" for number in range(len(body.jobs))]
    drafts = [draft_of(call, one, where) for one, where in zip(body.jobs, places, strict=True)]
    jobs = _enqueued(call, drafts, places)
    return Result(
        responses.Jobs(responses.jobs_out(jobs, call.redact)), 200 if all(job.existing for job in jobs) else 201
    )


@at(
    "GET /jobs",
    "read",
    responses.JobPage,
    {200: "Some jobs, newest first, and where to go on"},
    query=requests.JobsQuery,
)
def list_jobs(call: Call, query: requests.JobsQuery, _: None) -> responses.JobPage:
    """Find jobs, newest first.

    `state` may be repeated. A page looks at a limited number of jobs (`scan`): it may be short, or empty, though there
    are more; as long as `next` is not null, give it as `before` to go on.
    """
    page = call.client.jobs(
        limit=query.limit,
        before=None if query.before is UNSET else query.before,
        scan=_scan(call, query.scan, call.limits.page_scan),
        **which(query, "query"),
    )
    return responses.JobPage(responses.jobs_out(page.jobs, call.redact), page.next)


@at("GET /jobs/count", "read", responses.Counted, {200: "How many there are"}, query=requests.CountQuery)
def count_jobs(call: Call, query: requests.CountQuery, _: None) -> responses.Counted:
    """Count jobs, no further than 10,001."""
    scan = _scan(call, query.scan, call.limits.count_scan)
    number = call.client.count(most=query.most, scan=scan, **which(query, "query"))
    return responses.Counted(number, query.most, scan)


@at("GET /jobs/{id}", "read", responses.JobView, {200: "The job and its history", **_NO_JOB})
def show_job(call: Call, _: None, __: None) -> responses.JobView:
    """Look at one job: its attempts, what it waits for, what waits for it, and why it does not run."""
    client, id = call.client, call.path["id"]
    job = existing(call)
    return responses.job_view(
        job, client.attempts(id), client.blockers(id), client.dependents(id), client.explain(id), call.redact
    )


@at("GET /jobs/{id}/attempts", "read", responses.Attempts, {200: "Its attempts, in order", **_NO_JOB})
def list_attempts(call: Call, _: None, __: None) -> responses.Attempts:
    """Every attempt of a job, the one that runs now included."""
    return responses.Attempts(redacted(call.client.attempts(call.path["id"]), call.redact))


@at("GET /jobs/{id}/explain", "read", responses.Reasons, {200: "The reasons, the nearest first", **_NO_JOB})
def explain_job(call: Call, _: None, __: None) -> responses.Reasons:
    """Why a job does not run, in sentences."""
    return responses.Reasons(redacted(call.client.explain(call.path["id"]), call.redact))


@at("GET /jobs/{id}/chain", "read", responses.ChainOut, {200: "Its chain", **_NO_JOB})
def show_chain_of_job(call: Call, _: None, __: None) -> responses.ChainOut:
    """The chain that a job belongs to."""
    return responses.chain_out(call.client.chain(call.path["id"]), call.redact)


@at("POST /jobs/{id}/cancel", "operate", responses.JobOut, _CHANGED)
def cancel_job(call: Call, _: None, __: None) -> responses.JobOut:
    """End a job. A running one is asked to end: it is cancelled as soon as its attempt is over."""
    return responses.job_out(call.client.cancel(call.path["id"]), call.redact)


@at("POST /jobs/{id}/pause", "operate", responses.JobOut, _CHANGED)
def pause_job(call: Call, _: None, __: None) -> responses.JobOut:
    """Hold a job back until it is resumed. A running one is asked to stop."""
    return responses.job_out(call.client.pause(call.path["id"]), call.redact)


@at("POST /jobs/{id}/resume", "operate", responses.JobOut, _CHANGED)
def resume_job(call: Call, _: None, __: None) -> responses.JobOut:
    """Let a paused or failed job go on, with its attempts anew."""
    return responses.job_out(call.client.resume(call.path["id"]), call.redact)


@at("POST /jobs/{id}/run-now", "operate", responses.JobOut, _CHANGED)
def run_job_now(call: Call, _: None, __: None) -> responses.JobOut:
    """Make a job that waits for its time, or for a retry, due at once."""
    return responses.job_out(call.client.run_now(call.path["id"]), call.redact)


@at("POST /jobs/{id}/complete", "operate", responses.JobOut, _CHANGED, body=requests.CompletionIn)
def complete_job(call: Call, _: None, body: requests.CompletionIn) -> responses.JobOut:
    """Succeed a job from outside, with a result, or by going on with another job of its chain."""
    return completed(call, body, chain=False)


@at(
    "POST /jobs/{id}/signal",
    "operate",
    responses.Told,
    {200: "Whether it was new", **_NO_JOB, **_STATE},
    body=requests.SignalIn,
)
def signal_job(call: Call, _: None, body: requests.SignalIn) -> responses.Told:
    """Tell a job something that its handler waits for, or will."""
    with refused_at("body.value", f"signal {body.name!r}"):
        return responses.Told(call.client.signal(call.path["id"], body.name, body.value))


@at(
    "DELETE /jobs/{id}",
    "operate",
    None,
    {204: "It is gone", **_NO_JOB, 409: "Other jobs wait for its chain"},
    query=requests.DeleteQuery,
)
def delete_job(call: Call, query: requests.DeleteQuery, _: None) -> Result:
    """Remove a job and its history, whatever its state.

    With `chain`, all jobs of its chain; with `dependents` as well, the chains of all that wait for it.
    """
    if query.dependents and not query.chain:
        raise invalid([Fault("query.dependents", "dependents wait for chains: say chain=true as well")])
    call.client.delete(call.path["id"], chain=query.chain, dependents=query.dependents)
    return Result(None, 204)


ENDPOINTS = [
    enqueue, enqueue_many, list_jobs, count_jobs, show_job, list_attempts, explain_job, show_chain_of_job, cancel_job,
    pause_job, resume_job, run_job_now, complete_job, signal_job, delete_job,
]  # fmt: skip


def _scan(call: Call, asked: int | UnsetType, otherwise: int) -> int:
    """How many jobs are looked at. Who may only look gets less: the others wait meanwhile."""
    if asked is UNSET:
        return otherwise
    if asked > call.limits.most_scan:
        raise invalid([Fault("query.scan", f"is at most {call.limits.most_scan} with a token of this role")])
    return asked


def which(asked: requests.Filter, where: str) -> Which:
    """A filter as the client takes it."""
    given: dict[str, Any] = {
        name: getattr(asked, name) for name in requests.Filter.__struct_fields__ if getattr(asked, name) is not UNSET
    }
    for name in ("created_from", "created_to"):
        if name in given:
            given[name] = moment(given[name], f"{where}.{name}")
    if not given.get("state", True):
        del given["state"]
    return cast(Which, given)


def existing(call: Call) -> Job[Any]:
    """The job that the path names."""
    job = call.client.get(call.path["id"])
    if job is None:
        raise JobNotFound(call.path["id"])
    return job


def completed(call: Call, body: requests.CompletionIn, *, chain: bool) -> responses.JobOut:
    """Succeed a job, or that of its chain which is not over yet."""
    following = None if body.continue_with is None else draft_of(call, body.continue_with, "body.continue_with")
    with refused_at("body.result", "result"):
        job = call.client.complete(call.path["id"], body.result, continue_with=following, chain=chain)
    return responses.job_out(job, call.redact)


@contextmanager
def refused_at(where: str, path: str) -> Iterator[None]:
    """Say of a value that cannot be stored where it stands in the request; the client calls that place `path`."""
    try:
        yield
    except InvalidPayload as error:
        rest = error.path.removeprefix(path) if error.path.startswith(path) else ""
        raise invalid([Fault(where + rest, error.problem)]) from None


def _enqueued(call: Call, drafts: list[Any], places: list[str]) -> list[Job[Any]]:
    try:
        return call.client.enqueue_many(drafts)
    except JobNotFound as error:
        gone = set(error.ids)
        faults = [
            Fault(f"{place}.after", f"there is no job {id}")
            for draft, place in zip(drafts, places, strict=True)
            for id in draft.after
            if id in gone
        ]
        raise (invalid(faults) if faults else Refusal("not-found", str(error))) from None
