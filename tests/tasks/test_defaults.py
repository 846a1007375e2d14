"""`App(defaults=...)`: options for all tasks that do not set them."""

from __future__ import annotations

from datetime import timedelta
from typing import Any

import pytest

from relet import App, Backoff, InvalidInput


def _work() -> None: ...


def test_a_task_gets_the_defaults_of_its_app_unless_it_sets_an_option() -> None:
    defaults: Any = {
        "queue": "mail", "max_attempts": 9, "backoff": Backoff(base=2, max=8), "lease": 7.5,
        "timeout": timedelta(minutes=1),
    }  # fmt: skip
    with App("sqlite:///:memory:", defaults=defaults) as app:
        plain = app.task(_work)
        own = app.task(name="own", queue="web", timeout=None, max_attempts=1)(_work)
    assert (plain.queue, plain.policy.max_attempts, plain.policy.lease) == ("mail", 9, 7.5)
    assert (plain.policy.timeout, plain.policy.backoff) == (60.0, Backoff(base=2, max=8))
    assert (own.queue, own.policy.max_attempts, own.policy.timeout, own.policy.lease) == ("web", 1, None, 7.5)
    draft = plain.using(max_attempts=2).draft()
    assert (draft.queue, draft.policy.max_attempts, draft.policy.timeout) == ("mail", 2, 60.0)


@pytest.mark.parametrize(
    ("defaults", "message"),
    [
        ({"max_attempts": 0}, r"App\(defaults=...\): max_attempts must be a whole number from 1"),
        ({"queue": "a b"}, r"App\(defaults=...\): queue must be"),
        ({"target": "x"}, r"App\(defaults=...\) has no option target; there are backoff, codec, lease"),
        ({"max_retries": 3}, r"has no option max_retries; max_retries: use max_attempts="),
    ],
)
def test_wrong_defaults_are_refused_when_the_app_is_made(defaults: Any, message: str) -> None:
    with pytest.raises(InvalidInput, match=message):
        App("sqlite:///:memory:", defaults=defaults)


def test_an_app_closes_its_connections_at_the_end_of_a_with_block(tmp_path: Any) -> None:
    with App(f"sqlite:///{tmp_path}/relet.db") as app:
        app.task(_work).enqueue()
        assert app.client.count() == 1
        assert (tmp_path / "relet.db-wal").exists()
    assert not (tmp_path / "relet.db-wal").exists(), "SQLite removes it when the last connection is closed"
