"""Backoff, ids, and the texts of errors."""

from __future__ import annotations

import random
import uuid
from typing import Any

import pytest

from relet import Backoff, InvalidInput, LeaseLost, Retry, Snooze
from relet._core.ids import id_time, make_id, parse_id


def test_backoff_doubles_up_to_its_most_and_all_of_it_is_chance() -> None:
    backoff = Backoff(base=0.5, max=30)
    assert [backoff.delay(failures, 1.0) for failures in (1, 2, 3, 7, 1_000_000)] == [0.5, 1.0, 2.0, 30, 30]
    assert backoff.delay(3, 0.0) == 0.0


def test_backoff_without_jitter_is_exact() -> None:
    backoff = Backoff(base=10, max=300, jitter=False)
    assert [backoff.delay(failures, 0.3) for failures in range(1, 8)] == [10, 20, 40, 80, 160, 300, 300]


@pytest.mark.parametrize("wrong", [{"base": -1}, {"max": float("nan")}, {"factor": 0.5}, {"base": True}, {"max": "1"}])
def test_a_backoff_that_makes_no_sense_is_refused(wrong: dict[str, Any]) -> None:
    with pytest.raises(InvalidInput, match=f"backoff {next(iter(wrong))}"):
        Backoff(**wrong)


def test_ids_are_uuids_of_version_7_that_carry_their_time_and_sort_by_it() -> None:
    chance = random.Random(7)
    moments = sorted(chance.uniform(1.6e9, 4e9) for _ in range(200))
    ids = [make_id(moment, chance.randbytes(10)) for moment in moments]
    assert ids == sorted(ids)
    for moment, made in zip(moments, ids, strict=True):
        parsed = uuid.UUID(made)
        assert (parsed.version, parsed.variant) == (7, uuid.RFC_4122)
        assert abs(id_time(made) - moment) < 0.001
        assert parse_id(made) == parse_id(parsed) == made


def test_errors_have_the_values_that_a_program_needs() -> None:
    assert (Snooze(5.0).delay, Retry(delay=2.0).delay, Retry().delay) == (5.0, 2.0, None)
    assert LeaseLost("some-id").job_id == "some-id"
    assert "nothing was changed" in str(LeaseLost("some-id"))
