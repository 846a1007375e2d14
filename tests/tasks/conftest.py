"""Fixtures that all tests of tasks share."""

import pytest

from relet._attempts.attempt import Attempt
from relet._tasks.task import Task
from tests.tasks.helpers import App


@pytest.fixture
def app() -> App:
    return App()


@pytest.fixture
def charge(app: App) -> Task[..., str]:
    @app.task(queue="billing", max_attempts=5, timeout=300)
    def charge(attempt: Attempt, account: str, cents: int = 100) -> str:
        return f"{account} pays {cents} at version {attempt.version}"

    return charge
