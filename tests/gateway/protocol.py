"""A client of the worker protocol that does what it is told, one request at a time."""

from __future__ import annotations

import http.client
import json
import uuid
from collections.abc import Mapping
from contextlib import closing
from typing import Any
from urllib.parse import urlsplit

from relet import Job

TIMEOUT = 30.0


class Refused(Exception):
    """A problem document."""

    def __init__(self, status: int, problem: dict[str, Any]) -> None:
        super().__init__(f"{status} {problem}")
        self.status, self.problem = status, problem
        self.kind = str(problem.get("type", "")).rpartition(":")[2]


class Speaker:
    """A worker by name, which keeps nothing in mind but its name."""

    def __init__(
        self,
        url: str,
        token: str,
        worker: str = "test:1:aaaaaaaa",
        lease: float = 30.0,
        headers: Mapping[str, str] | None = None,
    ) -> None:
        self.url, self.token, self.worker, self.lease = url, token, worker, lease
        self._headers = headers or {}

    def send(self, verb: str, body: object, token: str | None = None) -> http.client.HTTPConnection:
        """A connection on which a request was sent, and whose answer was not read."""
        parts = urlsplit(self.url)
        connection = http.client.HTTPConnection(parts.hostname or "", parts.port, timeout=TIMEOUT)
        text = body if isinstance(body, bytes) else json.dumps(body).encode()
        sender = {"Authorization": f"Bearer {token or self.token}", "Content-Type": "application/json"}
        connection.request("POST", f"{parts.path}/worker/v1/{verb}", text, {**self._headers, **sender})
        return connection

    def post(self, verb: str, body: object, token: str | None = None) -> dict[str, Any]:
        with closing(self.send(verb, body, token)) as connection:
            answer = connection.getresponse()
            found: dict[str, Any] = json.loads(answer.read())
        if answer.status != 200:
            assert answer.headers["content-type"] == "application/problem+json"
            raise Refused(answer.status, found)
        return found

    def ask(self, verb: str, **fields: Any) -> dict[str, Any]:
        return self.post(verb, {"worker": self.worker, **fields})

    def claim(self, *tasks: str, token: str | None = None, **fields: Any) -> list[dict[str, Any]]:
        """The jobs of a claim."""
        token = token or str(uuid.uuid4())
        body = {"token": token, "tasks": list(tasks) or ["work"], "want": 10, "lease": self.lease, **fields}
        jobs: list[dict[str, Any]] = self.ask("claim", **body)["jobs"]
        return jobs

    def settle(self, *outcomes: dict[str, Any]) -> list[dict[str, Any]]:
        settled: list[dict[str, Any]] = self.ask("settle", outcomes=list(outcomes))["settled"]
        return settled

    def renew(self, *jobs: dict[str, Any]) -> dict[str, Any]:
        return self.ask("renew", leases=[lease(job, version=job["version"]) for job in jobs], lease=self.lease)


def lease(job: dict[str, Any], **fields: Any) -> dict[str, Any]:
    return {"id": job["id"], "token": job["token"], **fields}


def succeeded(job: dict[str, Any], result: Any = None) -> dict[str, Any]:
    return lease(job, outcome="succeeded", result=result)


def ids(jobs: list[dict[str, Any]] | list[Job[Any]]) -> list[str]:
    return sorted(one["id"] if isinstance(one, dict) else one.id for one in jobs)
