"""Every page by name: its URL in a store, and a text that it contains."""

from __future__ import annotations

from collections.abc import Callable
from urllib.parse import quote

from relet import Client

Address = Callable[[Client], str]


def _at(address: str) -> Address:
    return lambda client: address


def _job(state: str, path: str = "/jobs/{}") -> Address:
    return lambda client: path.format(client.jobs(state=state, limit=1).jobs[0].id)


def _workflow(client: Client) -> str:
    """A job with durable steps."""
    jobs = client.jobs(state="succeeded", limit=200).jobs
    return f"/jobs/{next(job.id for job in jobs if client.steps(job))}"


def _chain(client: Client) -> str:
    """The longest chain of late."""
    jobs = client.jobs(state="succeeded", limit=200).jobs
    return f"/chains/{max(jobs, key=lambda job: job.position).id}"


def _target(client: Client) -> str:
    """The one with most behind it."""
    found = max(client.targets().targets, key=lambda one: one.waiting)
    return f"/targets?name={quote(found.target, safe='')}"


def _schedule(client: Client) -> str:
    return f"/schedules?name={quote(client.schedules.all()[0].name, safe='')}"


def _queue(path: str) -> Address:
    return lambda client: path + quote(client.queues()[0].queue, safe="")


VIEWS: dict[str, tuple[Address, str]] = {
    "overview": (_at("/"), "succeeded"),
    "overview of a month": (_at("/?range=30d"), "succeeded"),
    "queues": (_at("/queues"), "oldest"),
    "jobs": (_at("/jobs"), "newest first"),
    "failed jobs": (_at("/jobs?state=failed"), "With all"),
    "no such jobs": (_at("/jobs?task=none+such"), "No job matches"),
    "pending job": (_job("pending"), "Why it is not running"),
    "running job": (_job("running"), "left of its lease"),
    "job with steps": (_workflow, "reserve_stock"),
    "failed job": (_job("failed"), "Error"),
    "succeeded job": (_job("succeeded"), "Result"),
    "chain": (_chain, "Jobs of the chain"),
    "targets": (_at("/targets"), "held by"),
    "target": (_target, "Behind it, in order"),
    "workers": (_at("/workers"), "slots in use"),
    "queue": (_queue("/queues?name="), "Latest jobs"),
    "schedules": (_at("/schedules"), "next"),
    "schedule": (_schedule, "Latest ticks"),
    "failures": (_at("/failures"), "for example"),
    "audit": (_at("/audit"), "who"),
}

CONFIRMATIONS: dict[str, tuple[Address, str]] = {
    "cancel": (_job("queued", "/confirm/cancel?job={}"), "It cannot be resumed."),
    "delete": (_job("failed", "/confirm/delete?job={}"), "permanently deleted"),
    "rerun": (_job("failed", "/confirm/rerun?job={}"), "Arguments, as a JSON object"),
    "bulk": (_at("/confirm/bulk?action=resume&state=failed"), "all their attempts are restored"),
    "limit queue": (_queue("/confirm/limit-queue?queue="), "an empty field lifts a limit"),
    "enqueue": (_at("/confirm/enqueue"), "Which task?"),
    "enqueue a task": (_at("/confirm/enqueue?task=charge"), "Arguments, as a JSON object"),
}
EVERYTHING = VIEWS | {f"confirm {name}": one for name, one in CONFIRMATIONS.items()}
