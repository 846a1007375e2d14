"""An operator: cancels, pauses, resumes, completes and signals jobs until SIGTERM, and records each call."""

from __future__ import annotations

import random
import signal
import time
from types import FrameType

from .. import Client
from ..errors import InvalidTransition, JobNotFound, ReletError, StoreError
from .facts import BY_OPERATOR
from .history import History
from .settings import load
from .shop import app

EVERY = 0.15  # seconds between two calls, on average
LIVE = ["pending", "queued", "running", "paused"]


class Operator:
    def __init__(self) -> None:
        self._settings = load()
        self._history = History(self._settings.histories, "operator")
        self._random = random.Random(self._settings.seed)  # noqa: S311
        self._client: Client = app.client.acting_as("operator")
        self._call = 0
        self.is_stopping = False

    def run(self) -> None:
        signal.signal(signal.SIGTERM, self._stop)
        while not self.is_stopping:
            verb = self._random.choice(
                ["cancel", "pause", "resume", "run_now", "signal", "signal", "complete", "queue"]
            )
            try:
                self._pause_queue() if verb == "queue" else self._act(verb)
            except StoreError as error:
                self._history.write("list", phase="failed", error=str(error))
            time.sleep(self._random.expovariate(1 / EVERY))
        self.clean_up()
        app.close()

    def clean_up(self) -> None:
        """Let everything run that waits for an operator: the run is about to end."""
        for queue in ("default", "targets", "limited", "grouped"):
            self._client.resume_queue(queue)

    def _stop(self, *_: int | FrameType | None) -> None:
        self.is_stopping = True

    def _pause_queue(self) -> None:
        queue = self._random.choice(["targets", "limited", "grouped"])
        self._client.pause_queue(queue)
        time.sleep(self._random.random() * 0.3)
        self._client.resume_queue(queue)

    def _act(self, verb: str) -> None:
        task = "signalled" if verb == "signal" else None
        state = {"resume": "paused", "run_now": "pending"}.get(verb)
        jobs = self._client.jobs(task=task, state=[state] if state else LIVE, limit=20).jobs
        for job in self._random.sample(jobs, min(2, len(jobs))):
            self._call += 1
            about = {"call": self._call, "verb": verb, "job": job.id}
            self._history.write("verb", phase="invoked", **about)
            try:
                answer = self._do(verb, job.id)
            except (InvalidTransition, JobNotFound) as error:
                self._history.write("verb", phase="failed", error=str(error), **about)
            except ReletError as error:
                self._history.write("verb", phase="unknown", error=str(error), **about)
            else:
                self._history.write("verb", phase="ok", state=answer, **about)

    def _do(self, verb: str, job: str) -> str | None:
        if verb == "signal":
            self._client.signal(job, "go", 1)
            return None
        if verb == "complete":
            return str(self._client.complete(job, BY_OPERATOR).state)
        return str(getattr(self._client, verb)(job).state)


if __name__ == "__main__":
    Operator().run()
