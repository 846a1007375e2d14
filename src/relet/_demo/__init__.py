"""`relet demo`: two workers share jobs, the demo kills one of them with -9, and no job is lost.

This module is the app, as a user would write it. `story.py` runs it.
"""

from __future__ import annotations

import asyncio
import random

from .._attempts.attempt import Attempt
from ..app import App

app = App()


@app.task
async def charge(attempt: Attempt, account: str, cents: int) -> str:
    """Wait, as if for a payment provider, and report progress."""
    for step in range(8):
        attempt.progress(step, 8)
        await asyncio.sleep(random.uniform(0.02, 0.08))
    return f"{account} paid {cents}"
