"""A producer: enqueues jobs until it gets SIGTERM, and records each call: invoked, then ok, failed or unknown."""

from __future__ import annotations

import contextlib
import os
import random
import signal
import sys
import time
from collections.abc import Iterable
from types import FrameType

from .. import Client
from ..errors import InvalidInput, KeyTaken, ReletError, StoreError
from .facts import TENANT
from .history import History
from .settings import load
from .shop import Mix, app

HARM_EVERY = 150  # calls between two jobs that kill or block their worker
COUNT_EVERY = 20  # calls between two counts of the backlog
BACKLOG = 1000  # queued jobs
TENANT_EVERY = 8  # calls between two jobs of the tenant


def _is_behind(clients: Iterable[Client]) -> bool:
    """Whether workers have so much to do that jobs would wait longer than the run lasts."""
    try:
        return any(client.count(state=["queued"]) > BACKLOG for client in clients)
    except StoreError:
        return False


def main(number: int, rate: float) -> None:
    settings = load()
    history = History(settings.histories, f"producer{number}")
    mix, pause = Mix(settings.seed * 100 + number), random.Random(settings.seed + number)
    stop = [False]

    def on_signal(*_: int | FrameType | None) -> None:
        stop[0] = True

    signal.signal(signal.SIGTERM, on_signal)
    clients, call = {None: app.client, TENANT: app.client.tenant(TENANT)}, 0
    while not stop[0]:
        call += 1
        tenant = TENANT if call % TENANT_EVERY == 0 else None
        drafts = mix.rare() if call % HARM_EVERY == 0 else mix.drafts()
        about = {"call": call, "tenant": tenant, "ids": [draft.id for draft in drafts]}
        history.write("enqueue", phase="invoked", **about)
        try:
            jobs = clients[tenant].enqueue_many(drafts)
        except (InvalidInput, KeyTaken) as error:
            history.write("enqueue", phase="failed", error=str(error), **about)
        except StoreError as error:
            history.write("enqueue", phase="unknown", error=str(error), **about)
        else:
            history.write("enqueue", phase="ok", stored=[job.id for job in jobs], **about)
        time.sleep(pause.expovariate(rate))
        if call % COUNT_EVERY == 0:
            while not stop[0] and _is_behind(clients.values()):
                time.sleep(0.5)
    with contextlib.suppress(ReletError):
        app.close()


if __name__ == "__main__":
    main(int(sys.argv[1]), float(os.environ.get("RELET_TORTURE_RATE", "40")))
