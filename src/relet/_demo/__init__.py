"""`relet demo`: two workers share the work, one of them is killed with -9, and nothing is lost.

The app of the demo is here, as a user would write it; what happens to it is in `story.py`.
"""

from __future__ import annotations

import asyncio
import random

from .._attempts.attempt import Attempt
from ..app import App

app = App()


@app.task
async def charge(attempt: Attempt, account: str, cents: int) -> str:
    """What the jobs do: wait, as if for a payment provider, and say how far they are."""
    for step in range(8):
        attempt.progress(step, 8)
        await asyncio.sleep(random.uniform(0.02, 0.08))  # noqa: S311
    return f"{account} paid {cents}"
