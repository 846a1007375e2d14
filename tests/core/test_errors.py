"""Errors cross process boundaries whole: a process pool pickles them."""

from __future__ import annotations

import pickle

import pytest

from relet import errors

JOB = "019b76da-d0d1-7e6b-b979-dc05056e44cf"
FACTS: dict[type[BaseException], tuple[object, ...]] = {
    errors.InvalidPayload: ("$.a", "not JSON"),
    errors.CodecError: ("fernet", "no key"),
    errors.JobNotFound: (JOB, JOB),
    errors.ScheduleNotFound: ("nightly",),
    errors.InvalidTransition: (JOB, "cancel", "succeeded", "run it again"),
    errors.HasDependents: (JOB, (JOB,)),
    errors.KeyTaken: ("key", JOB),
    errors.IdempotencyConflict: ("cancel",),
    errors.LeaseLost: (JOB,),
    errors.JobFailed: (JOB, "ValueError: no"),
    errors.JobCancelled: (JOB,),
    errors.WaitTimeout: ({JOB: "running"}, 3.0),
    errors.Snooze: (3.0,),
    errors.SignalTimeout: (JOB, "go", 3.0),
    errors.Suspended: (3.0, "go"),
    errors.Aborted: ("cancelled",),
}
KINDS = [kind for name in errors.__all__ if isinstance(kind := getattr(errors, name), type)]


@pytest.mark.parametrize("kind", KINDS, ids=lambda kind: kind.__name__)
def test_an_error_is_the_same_after_pickling(kind: type[BaseException]) -> None:
    error = kind(*FACTS.get(kind, ("it went wrong",)))
    copy = pickle.loads(pickle.dumps(error))
    assert (type(copy), str(copy), vars(copy)) == (kind, str(error), vars(error))
