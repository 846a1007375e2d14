"""The app of `relet bench`, for its worker process. Environment variables name its store."""

from __future__ import annotations

import os
import time

from ...app import App

URL, SCHEMA = "RELET_BENCH_URL", "RELET_BENCH_SCHEMA"


class TaskRegistry:
    """The tasks on an app. A class, because the command needs them on a second app."""

    def __init__(self, app: App) -> None:
        self.app = app

        @app.task
        async def noop(account: str, cents: int) -> None: ...

        @app.task(queue="stamps")
        async def stamp() -> float:
            return time.time()

        self.noop, self.stamp = noop, stamp


app = App(os.environ.get(URL), schema=os.environ.get(SCHEMA, "relet"))
TaskRegistry(app)
