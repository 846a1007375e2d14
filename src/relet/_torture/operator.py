"""An operator: cancels, pauses, resumes, completes and signals jobs until SIGTERM, and records each call."""

from __future__ import annotations

import contextlib
import os
import random
import signal
import time
from http.client import HTTPException
from types import FrameType

from .. import Client
from ..errors import InvalidTransition, JobNotFound, ReletError, StoreError
from .facts import BY_OPERATOR, TENANT, WAITS_FOR_SIGNALS
from .history import History
from .requests import Refused, request
from .settings import load
from .shop import app

QUEUES = ("default", "targets", "limited", "grouped", "rated")
EVERY = 0.15  # seconds between two calls, on average
TENANT_SHARE, HTTP_SHARE = 0.1, 0.5
LIVE = ["pending", "queued", "running", "paused"]


class Operator:
    """Half of its calls are requests to the HTTP API, if it runs."""

    def __init__(self) -> None:
        self._settings = load()
        self._history = History(self._settings.histories, "operator")
        self._random = random.Random(f"{self._settings.seed} {os.getpid()}")
        self._clients: dict[str | None, Client] = {
            None: app.client.acting_as("operator"),
            TENANT: app.client.tenant(TENANT).acting_as("operator"),
        }
        self._call = 0
        self.is_stopping = False

    def run(self) -> None:
        signal.signal(signal.SIGTERM, self._stop)
        self._resume_queues()  # one before may have been killed
        while not self.is_stopping:
            verb = self._random.choice(
                ["cancel", "pause", "resume", "run_now", "signal", "signal", "complete", "delete", "queue"]
            )
            try:
                self._pause_queue() if verb == "queue" else self._act(verb)
            except StoreError as error:
                self._history.write("list", phase="failed", error=str(error))
            time.sleep(self._random.expovariate(1 / EVERY))
        self._resume_queues()
        app.close()

    def _resume_queues(self) -> None:
        for queue in QUEUES:
            with contextlib.suppress(StoreError):
                self._resume_queue(queue)

    def _stop(self, *_: int | FrameType | None) -> None:
        self.is_stopping = True

    def _pause_queue(self) -> None:
        queue = self._random.choice(QUEUES[1:])
        self._history.write("queue paused", queue=queue)
        self._clients[None].pause_queue(queue)
        time.sleep(self._random.random() * 0.3)
        self._resume_queue(queue)

    def _resume_queue(self, queue: str) -> None:
        self._clients[None].resume_queue(queue)
        self._history.write("queue resumed", queue=queue)

    def _act(self, verb: str) -> None:
        task = WAITS_FOR_SIGNALS if verb == "signal" else None
        state = {"resume": "paused", "run_now": "pending"}.get(verb)
        tenant = TENANT if self._random.random() < TENANT_SHARE else None
        jobs = self._clients[tenant].jobs(task=task, state=[state] if state else LIVE, limit=20).jobs
        for job in self._random.sample(jobs, min(1 if verb == "delete" else 2, len(jobs))):
            self._call += 1
            about = {"call": self._call, "verb": verb, "job": job.id, "tenant": tenant}
            self._history.write("verb", phase="invoked", **about)
            try:
                answer = self._do(tenant, verb, job.id)
            except (InvalidTransition, JobNotFound, Refused) as error:
                self._history.write("verb", phase="failed", error=str(error), **about)
            except (ReletError, OSError, HTTPException) as error:
                self._history.write("verb", phase="unknown", error=str(error), **about)
            else:
                self._history.write("verb", phase="ok", state=answer, **about)

    def _do(self, tenant: str | None, verb: str, job: str) -> str | None:
        if self._settings.web and tenant is None and verb != "delete" and self._random.random() < HTTP_SHARE:
            return self._request(verb, job)
        client = self._clients[tenant]
        if verb == "delete":
            client.delete(job)
            return None
        if verb == "signal":
            client.signal(job, "go", 1)
            return None
        if verb == "complete":
            return str(client.complete(job, BY_OPERATOR).state)
        return str(getattr(client, verb)(job).state)

    def _request(self, verb: str, job: str) -> str | None:
        """Repeated once if the answer was lost, with the same key."""
        body = {"signal": {"name": "go", "value": 1}, "complete": {"result": BY_OPERATOR}}.get(verb)
        key = f"{os.getpid()} {self._call}"
        try:
            answer = request(self._settings.web, f"jobs/{job}/{verb.replace('_', '-')}", body, key)
        except (OSError, HTTPException):
            answer = request(self._settings.web, f"jobs/{job}/{verb.replace('_', '-')}", body, key)
        return answer.get("state")


if __name__ == "__main__":
    Operator().run()
