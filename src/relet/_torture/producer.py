"""A producer: enqueues jobs until it gets SIGTERM, and records each call: invoked, then ok, failed or unknown."""

from __future__ import annotations

import contextlib
import os
import random
import signal
import sys
import time
from types import FrameType

from ..errors import InvalidInput, KeyTaken, ReletError, StoreError
from .history import History
from .settings import load
from .shop import Mix, app

HARM_EVERY = 150  # calls between two jobs that kill or block their worker


def main(number: int, rate: float) -> None:
    settings = load()
    history = History(settings.histories, f"producer{number}")
    mix, pause = Mix(settings.seed * 100 + number), random.Random(settings.seed + number)  # noqa: S311
    stop = [False]

    def on_signal(*_: int | FrameType | None) -> None:
        stop[0] = True

    signal.signal(signal.SIGTERM, on_signal)
    call = 0
    while not stop[0]:
        call += 1
        drafts = mix.rare() if call % HARM_EVERY == 0 else mix.drafts()
        ids = [draft.id for draft in drafts]
        history.write("enqueue", call=call, phase="invoked", ids=ids)
        try:
            jobs = app.client.enqueue_many(drafts)
        except (InvalidInput, KeyTaken) as error:
            history.write("enqueue", call=call, phase="failed", ids=ids, error=str(error))
        except StoreError as error:
            history.write("enqueue", call=call, phase="unknown", ids=ids, error=str(error))
        else:
            history.write("enqueue", call=call, phase="ok", ids=ids, stored=[job.id for job in jobs])
        time.sleep(pause.expovariate(rate))
    with contextlib.suppress(ReletError):
        app.close()


if __name__ == "__main__":
    main(int(sys.argv[1]), float(os.environ.get("RELET_TORTURE_RATE", "40")))
