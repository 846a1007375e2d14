"""Cron expressions in words."""

from __future__ import annotations

import pytest

from relet._web.pages.cron_words import cron_words


@pytest.mark.parametrize(
    ("cron", "words"),
    [
        ("* * * * *", "every minute"),
        ("*/20 * * * *", "every 20 minutes"),
        ("0 * * * *", "every hour"),
        ("15 * * * *", "every hour at minute 15"),
        ("0 */6 * * *", "every 6 hours"),
        ("0 3 * * *", "every day at 03:00"),
        ("30 9,17 * * *", "every day at 09:30 and 17:30"),
        ("30 9 * * mon", "every Monday at 09:30"),
        ("0 9 * * mon-fri", "Monday to Friday at 09:00"),
        ("0 9 * * 0,6", "every Sunday and Saturday at 09:00"),
        ("*/5 * * * 1-5", "every 5 minutes, Monday to Friday"),
        ("0 0 1 * *", "on day 1 of the month at 00:00"),
        ("0 0 1,15 * *", "on day 1 and 15 of the month at 00:00"),
        ("0 0 24 12 *", "on day 24 of December at 00:00"),
        ("@daily", "every day at 00:00"),
    ],
)
def test_usual_expressions_in_words(cron: str, words: str) -> None:
    assert cron_words(cron) == words


@pytest.mark.parametrize(
    "cron",
    ["", "0 3 * *", "0 3 1 * mon", "0-30 3 * * *", "0 3 * 1-3 *", "0 3 * * mon#1", "0 3 L * *", "x y z * *",
     "1 2 3 4 <b>", "0 3 * * 9", "0 9-17 * * *", "0 3 5 99 *"],
)  # fmt: skip
def test_other_expressions_stay_as_they_are(cron: str) -> None:
    assert cron_words(cron) == ""
