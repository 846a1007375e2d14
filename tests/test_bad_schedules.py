"""Bad limits, signals and schedules, and what they get: a clear error of the right type, before anything is stored."""

from __future__ import annotations

import math
from typing import Any, cast

import pytest

from relet import App, InvalidInput, JobNotFound
from relet.errors import InvalidArguments, InvalidPayload, ScheduleNotFound
from tests.test_bad_input import UUID4, UUID7, Bad, Odd, Row, call, check, use, work

ALLOWED = r"1 to 512 printable characters"
GIVE_BOTH = "pass rate and per"

LIMITS: dict[str, Row] = {
    "nothing to set": (call("limit_queue", "q"), InvalidInput, "limit_queue needs something to set"),
    "words for nothing": (call("limit_queue", "q"), InvalidInput, "something to set"),
    "a rate without a time": (call("limit_queue", "q", rate=5), InvalidInput, GIVE_BOTH),
    "a time without a rate": (
        call("limit_queue", "q", per=5.0),
        InvalidInput,
        "limit_queue needs something to set|rate",
    ),
    "a time without a rate, with a limit": (call("limit_queue", "q", max_running=1, per=5.0), InvalidInput, GIVE_BOTH),
    "a time with a rate to be lifted": (call("limit_queue", "q", rate=None, per=5.0), InvalidInput, GIVE_BOTH),
    "a key without a rate": (call("limit_queue", "q", group="a", fair=True), InvalidInput, "group is for a limit"),
    "keys of all queues": (
        call("limit_queue", None, rate=5, per=1, group="a"),
        InvalidInput,
        "group and fair need a queue",
    ),
    "fairness of all queues": (call("limit_queue", None, fair=True), InvalidInput, "group and fair need a queue"),
    "negative rate": (call("limit_queue", "q", rate=-1, per=1), InvalidInput, "rate must be a whole number from 0"),
    "half a rate": (call("limit_queue", "q", rate=0.5, per=1), InvalidInput, "rate must be a whole number"),
    "rate of true": (call("limit_queue", "q", rate=True, per=1), InvalidInput, "rate must be a whole number"),
    "rate in words": (call("limit_queue", "q", rate="many", per=1), InvalidInput, "rate must be a whole number"),
    "rate beyond measure": (call("limit_queue", "q", rate=10**9, per=1), InvalidInput, "rate must be a whole number"),
    "no time at all": (call("limit_queue", "q", rate=1, per=0), InvalidInput, "per must be seconds from 0.001"),
    "negative time": (call("limit_queue", "q", rate=1, per=-5), InvalidInput, "per must be seconds"),
    "time that is no number": (call("limit_queue", "q", rate=1, per=math.nan), InvalidInput, "per must be seconds"),
    "endless time": (call("limit_queue", "q", rate=1, per=math.inf), InvalidInput, "per must be seconds"),
    "time in words": (call("limit_queue", "q", rate=1, per="1m"), InvalidInput, "per must be seconds"),
    "empty key": (call("limit_queue", "q", rate=1, per=1, group=""), InvalidInput, f"group must be {ALLOWED}"),
    "key with NUL": (call("limit_queue", "q", rate=1, per=1, group="a\0"), InvalidInput, f"group must be {ALLOWED}"),
    "key that is a number": (
        call("limit_queue", "q", rate=1, per=1, group=5),
        InvalidInput,
        f"group must be {ALLOWED}",
    ),
    "negative limit": (call("limit_queue", "q", max_running=-1), InvalidInput, "max_running must be a whole number"),
    "queue of stars": (call("limit_queue", "*", max_running=1), InvalidInput, "queue must be 1 to 128 letters"),
    "fairness in words": (call("limit_queue", "q", fair="yes"), InvalidInput, "fair must be True or False, not 'yes'"),
    "fairness in numbers": (call("limit_queue", "q", fair=1), InvalidInput, "fair must be True or False, not 1"),
    "empty key of a job": (use(group=""), InvalidInput, f"group must be {ALLOWED}"),
    "long key of a job": (use(group="k" * 513), InvalidInput, f"group must be {ALLOWED}"),
}

NAME = f"a signal's name must be {ALLOWED}"
SIGNALS: dict[str, Row] = {
    "empty name": (call("signal", UUID7, ""), InvalidInput, NAME),
    "long name": (call("signal", UUID7, "n" * 513), InvalidInput, NAME),
    "name with a control character": (call("signal", UUID7, "a\nb"), InvalidInput, NAME),
    "name that is a number": (call("signal", UUID7, 5), InvalidInput, NAME),
    "value that is no JSON": (call("signal", UUID7, "n", Odd()), InvalidPayload, "signal 'n'.*Odd"),
    "value with NUL": (call("signal", UUID7, "n", {"a": "\0"}), InvalidPayload, r"signal 'n'\.a: contains a NUL"),
    "value that is no number": (call("signal", UUID7, "n", math.nan), InvalidPayload, "signal 'n': nan is not JSON"),
    "value too large": (call("signal", UUID7, "n", "x" * 300_000), InvalidPayload, "the limit is 262,144"),
    "no id": (call("signal", "job 5", "n"), InvalidInput, "job 5"),
    "other id": (call("signal", UUID4, "n"), InvalidInput, "UUIDv7"),
    "unknown job": (call("signal", UUID7, "n"), JobNotFound, UUID7),
}


def plan(*args: Any, **options: Any) -> Bad:
    """Put a schedule, by its name, of the task."""
    return lambda app: app.client.schedules.put(args[0], work(app).draft(), *args[1:], **options)


def scheduled(method: str, *args: Any, **kwargs: Any) -> Bad:
    """Say this to the schedules."""
    return lambda app: getattr(app.client.schedules, method)(*args, **kwargs)


EITHER = "either a cron expression"
SCHEDULES: dict[str, Row] = {
    "no time": (plan("s"), InvalidInput, EITHER),
    "two times": (plan("s", "* * * * *", every=5), InvalidInput, EITHER),
    "no cron": (plan("s", "every day"), InvalidInput, "every day"),
    "too few fields": (plan("s", "* * * *"), InvalidInput, "five fields|5 fields"),
    "minute 60": (plan("s", "60 * * * *"), InvalidInput, "minute"),
    "a day that never comes": (plan("s", "0 0 30 2 *"), InvalidInput, "0 0 30 2"),
    "cron that is a number": (plan("s", 5), InvalidInput, "cron|five fields|expression"),
    "too often": (plan("s", every=0.05), InvalidInput, "every must be seconds from 0.1"),
    "never again": (plan("s", every=math.inf), InvalidInput, "every must be seconds"),
    "backwards": (plan("s", every=-5), InvalidInput, "every must be seconds"),
    "in words": (plan("s", every="5m"), InvalidInput, "every must be seconds"),
    "unknown zone": (plan("s", "* * * * *", timezone="Mars/Crater"), InvalidInput, "no time zone 'Mars/Crater'"),
    "zone outside": (plan("s", "* * * * *", timezone="../../etc/passwd"), InvalidInput, "no time zone"),
    "zone that is a number": (plan("s", "* * * * *", timezone=5), InvalidInput, "timezone must be"),
    "zone that is a list": (plan("s", "* * * * *", timezone=[]), InvalidInput, "timezone must be"),
    "empty zone": (plan("s", "* * * * *", timezone=""), InvalidInput, "timezone must be"),
    "unknown policy": (plan("s", every=5, missed="twice"), InvalidInput, "missed must be one of skip, once, all"),
    "unknown overlap": (plan("s", every=5, overlap="no"), InvalidInput, "overlap must be one of allow, skip, wait"),
    "empty name": (plan("", every=5), InvalidInput, f"the name of a schedule must be {ALLOWED}"),
    "long name": (plan("n" * 513, every=5), InvalidInput, "the name of a schedule"),
    "name that is a number": (plan(5, every=5), InvalidInput, "the name of a schedule"),
    "no draft": (
        scheduled("put", "s", "sweep", every=5),
        InvalidInput,
        r"takes a draft \(task.draft\(...\)\), not str",
    ),
    "a task": (lambda a: a.client.schedules.put("s", cast(Any, work(a)), every=5), InvalidInput, "takes a draft"),
    "a draft with a time": (
        lambda a: a.client.schedules.put("s", work(a).using(delay=5).draft(), every=5),
        InvalidInput,
        "its draft cannot have delay",
    ),
    "a draft with a key": (
        lambda a: a.client.schedules.put("s", work(a).using(unique="k").draft(), every=5),
        InvalidInput,
        "its draft cannot have unique",
    ),
    "get of no name": (scheduled("get", ""), InvalidInput, "the name of a schedule"),
    "ticks of none": (scheduled("ticks", "s", limit=0), InvalidInput, "limit must be a whole number"),
    "too many ticks": (scheduled("ticks", "s", limit=10**6), InvalidInput, "limit must be a whole number"),
    **{
        verb: (scheduled(verb, "unknown"), ScheduleNotFound, "unknown")
        for verb in ("pause", "resume", "run_now", "remove")
    },
    "decorating no task": (
        lambda a: cast(Any, a.schedule(every=5))(len),
        InvalidInput,
        r"write @app.schedule\(...\) above @app.task",
    ),
    "decorating with wrong arguments": (
        lambda a: a.schedule(every=5, arguments={"colour": "red"})(work(a)),
        InvalidArguments,
        "colour",
    ),
}

FAMILIES = {"limit": LIMITS, "signal": SIGNALS, "schedule": SCHEDULES}


@pytest.mark.long
@pytest.mark.parametrize("family", FAMILIES)
def test_bad_limits_signals_and_schedules_get_a_clear_error_and_store_nothing(furnished: App, family: str) -> None:
    check(furnished, FAMILIES[family])
    assert furnished.schedules == {}


def test_other_values_at_the_limits_are_stored(furnished: App) -> None:
    client = furnished.client
    client.limit_queue("q", rate=0, per=0.001, group="k" * 512)
    client.limit_queue("q", rate=1_000_000, per=10 * 366 * 86400, group="*")
    client.limit_queue("q", max_running=0, rate=None, fair=True)
    (queue,) = (one for one in client.queues() if one.queue == "q")
    assert (queue.max_running, queue.fair, len(queue.rates)) == (0, True, 2)
    job = client.jobs(state="queued").jobs[0]
    assert client.signal(job, "n" * 512, "x" * 200_000)
    made = client.schedules.put("n" * 512, work(furnished).using(queue="q", group="k").draft(1), "0 0 29 2 *")
    assert client.schedules.get(made.name) == made
    assert client.schedules.put("often", work(furnished).draft(), every=0.1, timezone="America/St_Johns").every == 0.1
