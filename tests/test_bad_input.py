"""Bad input and what it gets: a clear error of the right type, before anything is stored.

One table for each family. Every entry is given to every kind of store, and no table of it may change.
"""

from __future__ import annotations

import asyncio
import math
import uuid
from collections.abc import Callable
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta, timezone
from typing import Any

import pytest

from relet import App, Backoff, InvalidInput, ReletError
from relet._core.ids import make_id
from relet._tasks.task import PlainTask
from relet.errors import InvalidArguments, InvalidPayload, InvalidTransition, UnknownTask
from tests.databases import inventory

UUID4 = "3f2b8f0e-7a51-4a3c-9a55-0d6a9a2f5f10"
UUID7 = "0192f3a0-7c1e-7b3a-9d1f-2f6f5a1c0de1"

Bad = Callable[[App], Any]
Row = tuple[Bad, type[Exception], str]


@dataclass
class Record:
    inner: Any


class Odd:
    """Nothing that JSON knows."""


def work(app: App) -> PlainTask[..., Any]:
    return app.lookup("work")  # type: ignore[return-value]


def pay(value: Any) -> Bad:
    """Enqueue with this payload."""
    return lambda app: work(app).enqueue(value)


def use(**options: Any) -> Bad:
    """Enqueue with these options."""
    return lambda app: work(app).using(**options).enqueue()


def call(method: str, *args: Any, **kwargs: Any) -> Bad:
    """Say this to the client."""
    return lambda app: getattr(app.client, method)(*args, **kwargs)


def nested(depth: int) -> Any:
    value: Any = []
    for _ in range(depth):
        value = [value]
    return value


def circular() -> list[Any]:
    value: list[Any] = []
    value.append(value)
    return value


PAYLOADS: dict[str, Row] = {
    "NUL": (pay({"a": ["b", "c\0d"]}), InvalidPayload, r"work\(value\)\.a\[1\]: contains a NUL"),
    "NUL in a key": (pay({"a\0": 1}), InvalidPayload, r"value.*NUL"),
    "lone surrogate": (pay(["\ud800"]), InvalidPayload, r"work\(value\)\[0\]: contains a lone surrogate"),
    "lone surrogate in a key": (pay({"\udfff": 1}), InvalidPayload, "surrogate"),
    "NaN": (pay({"x": math.nan}), InvalidPayload, r"work\(value\)\.x: nan is not JSON"),
    "infinity": (pay([[math.inf]]), InvalidPayload, r"work\(value\)\[0\]\[0\]: inf is not JSON"),
    "infinity below zero": (pay(Record(-math.inf)), InvalidPayload, r"work\(value\)\.inner: -inf"),
    "number as a key": (pay({1: 2}), InvalidPayload, "not a string"),
    "none as a key": (pay({"a": {None: 2}}), InvalidPayload, "value"),
    "unknown type": (pay({"a": [Odd()]}), InvalidPayload, r"work\(value\)\.a\[0\].*Odd"),
    "function": (pay(len), InvalidPayload, "value"),
    "too deep": (pay(nested(64)), InvalidPayload, "nested deeper than 64"),
    "much too deep": (pay(nested(5000)), InvalidPayload, "nested deeper than 64"),
    "contains itself": (pay(circular()), InvalidPayload, "nested deeper than 64|contains itself"),
    "too large": (pay("x" * (256 * 1024)), InvalidPayload, r"262,\d+ bytes of JSON, the limit is 262,144"),
    "too large in bytes": (pay("é" * (128 * 1024)), InvalidPayload, "the limit is 262,144"),
    "integer too large": (pay(2**63), InvalidPayload, "more than 64 bits"),
    "integer too small": (pay(-(2**63) - 1), InvalidPayload, "more than 64 bits"),
}

ARGUMENTS: dict[str, Row] = {
    "too many": (lambda app: work(app).enqueue(1, 2, 3), InvalidArguments, "work"),
    "unknown": (lambda app: work(app).enqueue(colour="red"), InvalidArguments, "colour"),
    "twice": (lambda app: work(app).enqueue(1, value=2), InvalidArguments, "value"),
    "missing": (lambda app: app.lookup("strict").enqueue(), InvalidArguments, "number"),
    "wrong type": (lambda app: app.lookup("strict").enqueue("seven"), InvalidArguments, "number"),
    "wrong arguments, async": (lambda app: asyncio.run(work(app).aenqueue(1, 2, 3)), InvalidArguments, "work"),
}

NAMES: dict[str, Row] = {
    "empty queue": (use(queue=""), InvalidInput, "queue must be 1 to 128 letters"),
    "long queue": (use(queue="q" * 129), InvalidInput, "queue must be 1 to 128 letters"),
    "queue with a control character": (use(queue="a\nb"), InvalidInput, "queue must be"),
    "queue with NUL": (use(queue="a\0"), InvalidInput, "queue must be"),
    "queue with quotes": (use(queue="a'b"), InvalidInput, "queue must be"),
    "queue with double quotes": (use(queue='a"b'), InvalidInput, "queue must be"),
    "queue with a blank": (use(queue="a b"), InvalidInput, "queue must be"),
    "queue of all": (use(queue="*"), InvalidInput, "queue must be"),
    "queue that ends in a newline": (use(queue="a\n"), InvalidInput, "queue must be"),
    "queue that is a number": (use(queue=5), InvalidInput, "queue must be"),
    "queue that is nothing": (use(queue=None), InvalidInput, "queue must be"),
    "empty target": (use(target=""), InvalidInput, "target must be 1 to 512 printable"),
    "long target": (use(target="t" * 513), InvalidInput, "target must be 1 to 512"),
    "target with a control character": (use(target="a\x07"), InvalidInput, "target must be"),
    "target with a lone surrogate": (use(target="\ud800"), InvalidInput, "target must be"),
    "target that is a number": (use(target=7), InvalidInput, "target must be"),
    "empty key": (use(unique=""), InvalidInput, "unique must be"),
    "long key": (use(unique="k" * 513), InvalidInput, "unique must be"),
    "key with NUL": (use(unique="\0"), InvalidInput, "unique must be"),
    "tenant with quotes": (use(tenant="a'b"), InvalidInput, "schema is named|tenant must be"),
    "tenant with capitals": (use(tenant="Acme"), InvalidInput, "schema is named"),
    "empty tenant": (use(tenant=""), InvalidInput, "tenant must be|schema is named"),
    "empty tenant, to the client": (
        lambda app: app.client.enqueue(work(app).draft(), tenant=""),
        InvalidInput,
        "schema is named|tenant",
    ),
    "long tenant": (use(tenant="t" * 49), InvalidInput, "1 to 48"),
    "tenant that leads elsewhere": (use(tenant="../../etc"), InvalidInput, "schema is named"),
    "tenant of the client": (lambda app: app.client.tenant("../x").count(), InvalidInput, "schema is named"),
    "paused queue": (call("pause_queue", "a b"), InvalidInput, "queue must be"),
    "resumed queue": (call("resume_queue", ""), InvalidInput, "queue must be"),
    "limited queue": (call("limit_queue", "x'", max_running=1), InvalidInput, "queue must be"),
    "unknown task": (lambda app: app.lookup("wrok"), UnknownTask, "did you mean work"),
}

TIMES: dict[str, Row] = {
    "negative delay": (use(delay=-1), InvalidInput, "delay must be seconds from 0"),
    "delay that is not a number": (use(delay="60"), InvalidInput, "delay must be seconds"),
    "delay of NaN": (use(delay=math.nan), InvalidInput, "delay must be seconds"),
    "delay for ever": (use(delay=math.inf), InvalidInput, "delay must be seconds"),
    "delay as a timedelta": (use(delay=timedelta(seconds=-3)), InvalidInput, "delay must be seconds"),
    "delay of a century": (use(delay=100 * 366 * 86400), InvalidInput, "delay must be seconds"),
    "true as a delay": (use(delay=True), InvalidInput, "delay must be seconds"),
    "year 9999": (use(run_at=datetime(9999, 12, 31, tzinfo=UTC)), InvalidInput, "between 1970 and 2100"),
    "year 10000 in UTC": (
        use(run_at=datetime(9999, 12, 31, 23, tzinfo=timezone(-timedelta(hours=2)))),
        InvalidInput,
        "between 1970 and 2100",
    ),
    "year 1": (
        use(run_at=datetime(1, 1, 1, tzinfo=timezone(timedelta(hours=2)))),
        InvalidInput,
        "between 1970 and 2100",
    ),
    "naive datetime": (use(run_at=datetime(2030, 1, 1)), InvalidInput, "must have a timezone"),
    "a number as a moment": (use(run_at=1.0), InvalidInput, "must be a datetime with a timezone"),
    "both": (use(run_at=datetime(2030, 1, 1, tzinfo=UTC), delay=1), InvalidInput, "pass one of them"),
    "window without a key": (use(unique_for=5), InvalidInput, "pass unique as well"),
    "negative window": (use(unique="k", unique_for=-5), InvalidInput, "unique_for must be seconds"),
    "naive filter": (
        call("jobs", created_from=datetime(2030, 1, 1)),
        InvalidInput,
        "created_from must have a timezone",
    ),
    "number as a filter": (call("count", created_to=5), InvalidInput, "created_to must be a datetime"),
    "negative timeout": (call("wait", UUID7, timeout=-1), InvalidInput, "timeout must be seconds"),
    "endless timeout": (call("wait", UUID7, timeout=None), InvalidInput, "timeout must be seconds"),
    "negative retention": (call("prune", keep_finished=-1), InvalidInput, "keep_finished must be seconds"),
    "retention that is not a number": (call("prune", keep_failed="7d"), InvalidInput, "keep_failed must be seconds"),
}

OPTIONS: dict[str, Row] = {
    "unknown option": (use(colour="red"), InvalidInput, r"has no option colour; there are .*delay"),
    "an option of tasks only": (use(process=True), InvalidInput, "has no option process"),
    "priority too high": (use(priority=101), InvalidInput, "priority must be a whole number from -100 to 100"),
    "priority of a half": (use(priority=0.5), InvalidInput, "priority must be a whole number"),
    "priority true": (use(priority=True), InvalidInput, "priority must be a whole number"),
    "no attempts": (use(max_attempts=0), InvalidInput, "max_attempts must be a whole number from 1"),
    "backoff that is a number": (use(backoff=5), InvalidInput, "backoff must be a Backoff"),
    "timeout of nothing": (use(timeout=0), InvalidInput, "timeout must be seconds"),
    "unknown word": (use(on_failure="explode"), InvalidInput, "on_failure must be one of hold, continue"),
    "after a string": (use(depends_on=UUID7), InvalidInput, "depends_on must be a list"),
    "after a number": (use(depends_on=[5]), InvalidInput, "a job id is a UUIDv7"),
    "after itself": (use(id=UUID7, depends_on=[UUID7]), InvalidInput, "cannot wait for itself"),
    "backoff below zero": (lambda app: Backoff(base=-1), InvalidInput, "base"),
    "limit below zero": (
        call("limit_queue", "q", max_running=-1),
        InvalidInput,
        "max_running must be a whole number from 0",
    ),
    "limit of a half": (call("limit_queue", "q", max_running=1.5), InvalidInput, "max_running must be a whole number"),
    "limit that is a word": (
        call("limit_queue", "q", max_running="many"),
        InvalidInput,
        "max_running must be a whole number",
    ),
    "page of none": (call("jobs", limit=0), InvalidInput, "limit must be a whole number from 1 to 1000"),
    "page of too many": (call("jobs", limit=1001), InvalidInput, "limit must be a whole number"),
    "count to less than nothing": (call("count", limit=-1), InvalidInput, "limit must be a whole number"),
    "count to a word": (call("count", limit="all"), InvalidInput, "limit must be a whole number"),
    "unknown state": (call("jobs", state="sleeping"), InvalidInput, "state must be one of pending, queued"),
    "one unknown state of two": (call("count", state=["queued", "?"]), InvalidInput, "state must be one of"),
    "a state that is a number": (call("jobs", state=5), InvalidInput, "state must be"),
    "filter by a queue with NUL": (call("jobs", queue="a\0"), InvalidInput, "queue must be"),
    "filter by a task with a surrogate": (call("count", task="\ud800"), InvalidInput, "task must be"),
    "filter by a target with NUL": (call("count", target="a\0"), InvalidInput, "target must be"),
    "a filter that there is not": (
        call("jobs", status="failed"),
        InvalidInput,
        "no filter status; there are state",
    ),
    "two filters of a count that there are not": (call("count", a=1, b=2), InvalidInput, "there is no filter a, b"),
    "a filter of bulk that there is not": (call("bulk", "cancel", name="x"), InvalidInput, "there is no filter name"),
    "filter by a number": (call("jobs", queue=5), InvalidInput, "queue must be"),
    "enqueue what is no draft": (call("enqueue", "greet"), InvalidInput, "takes drafts"),
    "enqueue a task": (lambda app: app.client.enqueue(work(app)), InvalidInput, "takes drafts"),  # type: ignore[arg-type]
    "enqueue many of what are no drafts": (
        lambda app: app.client.enqueue_many([work(app).draft(), None]),  # type: ignore[list-item]
        InvalidInput,
        "takes drafts",
    ),
    "enqueue many of one": (lambda app: app.client.enqueue_many(work(app).draft()), InvalidInput, "takes drafts"),  # type: ignore[arg-type]
    "continue with what is no draft": (
        lambda app: app.client.complete(there(app), continue_with="next"),  # type: ignore[arg-type]
        InvalidInput,
        "draft",
    ),
    "a result that is none": (lambda app: app.client.complete(there(app), Odd()), InvalidPayload, "result.*Odd"),
    "a result that is too large": (
        lambda app: app.client.complete(there(app), "x" * 300_000),
        InvalidPayload,
        "result: 300,002 bytes",
    ),
    "a draft with a connection": (
        lambda app: work(app).using(connection=object()).draft(),
        InvalidInput,
        "a draft has no connection",
    ),
}

IDS: dict[str, Row] = {
    "no UUID": (call("wait", "42"), InvalidInput, "a job id is a UUIDv7 such as"),
    "empty": (call("wait", ""), InvalidInput, "a job id is a UUIDv7"),
    "version 4": (call("wait", UUID4), InvalidInput, "a job id is a UUIDv7"),
    "version 4 as a UUID": (call("cancel", uuid.UUID(UUID4)), InvalidInput, "a job id is a UUIDv7"),
    "with braces": (call("wait", "{" + UUID7 + "}"), InvalidInput, "a job id is a UUIDv7"),
    "without dashes": (call("wait", UUID7.replace("-", "")), InvalidInput, "a job id is a UUIDv7"),
    "a number": (call("delete", 5), InvalidInput, "a job id is a UUIDv7"),
    "nothing": (call("explain", None), InvalidInput, "a job id is a UUIDv7"),
    "from the year 1970": (call("wait", make_id(0.0, b"0123456789")), InvalidInput, "not between 2020 and 2100"),
    "from the year 9000": (call("wait", make_id(2.2e11, b"0123456789")), InvalidInput, "not between 2020 and 2100"),
    "chosen, version 4": (use(id=UUID4), InvalidInput, "a job id is a UUIDv7"),
    "to wait for": (use(depends_on=["x"]), InvalidInput, "a job id is a UUIDv7"),
    "of a page": (call("jobs", cursor="x"), InvalidInput, "cursor must be the cursor of an earlier page"),
    **{
        verb: (call(verb, "; drop table jobs"), InvalidInput, "a job id is a UUIDv7")
        for verb in ("pause", "resume", "run_now", "complete", "wait", "result", "attempts", "chain", "dependencies")
    },
}


def there(app: App) -> str:
    """The job that was there before."""
    return app.client.jobs(state="queued", limit=1).jobs[0].id


def in_state(state: str, verb: str) -> Row:
    def bad(app: App) -> Any:
        return getattr(app.client, verb)(app.client.jobs(state=state, limit=1).jobs[0])

    return bad, InvalidTransition, rf"cannot {verb} job [0-9a-f-]+: it is {state}"


TRANSITIONS: dict[str, Row] = {
    f"{verb} {state}": in_state(state, verb)
    for state, verbs in {
        "queued": ("resume", "run_now"),
        "failed": ("pause", "run_now"),
        "paused": ("pause", "run_now"),
        "succeeded": ("cancel", "pause", "resume", "run_now", "complete"),
        "cancelled": ("cancel", "pause", "resume", "run_now", "complete"),
    }.items()
    for verb in verbs
}

FAMILIES = {
    "payload": PAYLOADS,
    "arguments": ARGUMENTS,
    "name": NAMES,
    "time": TIMES,
    "option": OPTIONS,
    "id": IDS,
    "transition": TRANSITIONS,
}


@pytest.mark.parametrize("family", FAMILIES)
def test_bad_input_gets_a_clear_error_and_stores_nothing(furnished: App, family: str) -> None:
    check(furnished, FAMILIES[family])


def check(furnished: App, family: dict[str, Row]) -> None:
    """Each entry is refused, in the words given, and leaves no trace."""
    before = inventory(furnished._store())
    wrong: list[str] = []
    for name, (bad, kind, says) in family.items():
        try:
            with pytest.raises(kind, match=says) as caught:
                bad(furnished)
            assert isinstance(caught.value, ReletError)
            assert len(str(caught.value)) < 1000, "a message, not the payload"
        except BaseException as problem:
            wrong.append(f"{name}: {type(problem).__name__}: {str(problem).strip()[:300]}")
        if (after := inventory(furnished._store())) != before:
            wrong.append(f"{name}: something was stored: {before} -> {after}")
            before = after
    assert not wrong, "\n".join(["", *wrong])


def test_values_at_the_limits_are_stored(furnished: App) -> None:
    task = work(furnished)
    for prepared in (
        task.using(queue="q" * 128, target="t" * 512, unique="k" * 512, priority=100, max_attempts=10_000),
        task.using(queue="aZ09_.:/@+-", priority=-100, delay=10 * 366 * 86400 - 1),
        task.using(run_at=datetime(2099, 12, 31, tzinfo=UTC)),
        task.using(run_at=datetime(1970, 1, 1, tzinfo=UTC)),
    ):
        job = prepared.enqueue("x" * (256 * 1024 - 50))
        assert furnished.client.get(job) == job
    assert work(furnished).enqueue(nested(61)).state == "queued"
    assert work(furnished).enqueue([2**63 - 1, -(2**63)]).state == "queued"


def test_the_result_of_a_handler_is_refused_in_the_same_words(furnished: App) -> None:
    for value, says in (
        (math.nan, "result of work: nan is not JSON"),
        ({"a": "\0"}, r"result of work\.a: contains a NUL"),
    ):
        with pytest.raises(InvalidPayload, match=says):
            work(furnished).encode_result(value)


SCHEMAS = ["", 'a"b', "a'b", "a b", "A", "1a", "a" * 49, "a;drop schema public", "a.b", "ü", "a\n", None, 5, "a-b"]


@pytest.mark.parametrize("schema", SCHEMAS)
@pytest.mark.parametrize("url", ["postgresql://nowhere.invalid/x", "sqlite:///:memory:"])
def test_a_schema_has_a_plain_name(url: str, schema: Any) -> None:
    with pytest.raises(InvalidInput, match="a schema is named by 1 to 48 of a-z 0-9 _"):
        App(url, schema=schema)


@pytest.mark.parametrize("limit", [0, -1, 1.5, True, "256 KiB", 10**12])
def test_a_payload_limit_is_a_number_of_bytes(limit: Any) -> None:
    with pytest.raises(InvalidInput, match="payload_limit must be a whole number"):
        App("sqlite:///:memory:", payload_limit=limit)


def test_a_payload_limit_is_kept_to_the_byte() -> None:
    app = App("sqlite:///:memory:", payload_limit=100)

    @app.task
    def work(value: str) -> str:
        return value

    room = 100 - len('{"value":""}')
    work.draft("x" * room)
    with pytest.raises(InvalidPayload, match="101 bytes of JSON, the limit is 100"):
        work.draft("x" * (room + 1))
    with pytest.raises(InvalidPayload, match="the limit is 100"):
        app.client.complete(work.enqueue("x"), "y" * 99)
