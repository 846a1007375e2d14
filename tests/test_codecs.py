"""Codecs: nothing is stored in the clear, everything is read again, and a missing key is an error of one job."""

from __future__ import annotations

import asyncio
import json
import sqlite3
import sys
from collections.abc import Callable, Iterator
from contextlib import closing
from pathlib import Path
from typing import Any

import psycopg
import pytest
from cryptography.fernet import Fernet

from relet import App, Attempt, Backoff, InvalidInput, JobFailed, State
from relet._core.codecs import PREFIX, Codecs, codec_of, displayed, note_of, value_of
from relet.codecs import Codec, FernetCodec, ZlibCodec
from relet.errors import CodecError
from relet.testing import harness
from relet.testing._harness import _run_all
from relet.testing._inline import inline_worker
from relet.types import Encoded
from tests.conftest import PG_KINDS
from tests.databases import Database, shared_schema

MARKER = "canary-7f3a"
OLD, NEW = Fernet.generate_key(), Fernet.generate_key()
SOON = Backoff(base=0.001, max=0.001, jitter=False)

MakeApp = Callable[..., App]


@pytest.fixture(scope="module", params=["sqlite", *PG_KINDS])
def _schema(request: pytest.FixtureRequest) -> Iterator[Database]:
    if request.param == "sqlite":
        yield Database("sqlite", "", "relet")
    else:
        yield from shared_schema(request)


@pytest.fixture
def place(_schema: Database, tmp_path: Path) -> Iterator[Database]:
    """A store that several apps share: a SQLite file, or PostgreSQL."""
    if _schema.is_postgres:
        yield _schema
        _schema.empty()
    else:
        yield Database("sqlite", f"sqlite:///{tmp_path / 'relet.db'}", "relet")


@pytest.fixture
def make_app(place: Database) -> Iterator[MakeApp]:
    apps: list[App] = []

    def make(*codecs: Codec, **options: Any) -> App:
        app = App(place.url, schema=place.schema, codecs=codecs, **options)
        app.client.migrate()
        apps.append(app)
        return app

    yield make
    for app in apps:
        app.close()


def work(app: App) -> None:
    """Run everything that is due."""
    with inline_worker(app, None, None, {}) as worker:
        _run_all(worker, raise_errors=False)


def dump(place: Database) -> dict[str, str]:
    """The rows of every table, as text."""
    if place.is_postgres:
        with psycopg.connect(place.url) as connection:
            query = "select tablename from pg_tables where schemaname = %s"
            tables = [row[0] for row in connection.execute(query, [place.schema])]
            return {one: str(_rows(connection, f'"{place.schema}"."{one}"')) for one in tables}
    path = place.url.removeprefix("sqlite:///")
    with closing(sqlite3.connect(path)) as lite:
        tables = [row[0] for row in lite.execute("select name from sqlite_master where type = 'table'")]
        found = {one: str(lite.execute(f'select * from "{one}"').fetchall()) for one in tables}
    files = {one.name: one.read_bytes().decode("latin-1") for one in Path(path).parent.glob("relet.db*")}
    return found | files


def _rows(connection: psycopg.Connection[Any], table: str) -> list[Any]:
    return connection.execute(f"select t::text from {table} t".encode()).fetchall()


def order_tasks(app: App) -> dict[str, Any]:
    """Tasks that put the marker wherever a value can be stored."""

    @app.task(backoff=SOON)
    def price(text: str) -> dict[str, str]:
        return {"price": text}

    @app.task(backoff=SOON)
    def order(attempt: Attempt, text: str) -> dict[str, Any]:
        assert attempt.job.payload == {"text": text}
        attempt.progress(1, 2, f"note {text}")
        charged = attempt.step("charge", lambda: {"charged": text})
        approved = attempt.wait_for("approval", dict)
        found = attempt.dependency_result(price)
        return {"charged": charged, "approved": approved, "price": found}

    @app.task
    def waits(attempt: Attempt, text: str) -> None:
        with attempt.transaction() as tx:
            assert tx.enqueue(price.draft(text)).payload == {"text": text}
            tx.succeed(None)

    return {"price": price, "order": order, "waits": waits}


@pytest.mark.long
@pytest.mark.every_store
def test_no_table_holds_a_value_in_the_clear(place: Database, make_app: MakeApp) -> None:
    app = make_app(FernetCodec(NEW))
    tasks = order_tasks(app)
    price, order = tasks["price"], tasks["order"]
    app.schedule("0 3 * * *", arguments={"text": MARKER})(price)
    first = price.using(unique="a", replace=True).enqueue("replaced")
    assert price.using(unique="a", replace=True).enqueue(MARKER).id == first.id
    job = order.using(depends_on=[first]).enqueue(MARKER)
    many = app.client.enqueue_many([price.draft(MARKER) for _ in range(300)])
    delayed = price.using(delay=3600).enqueue(MARKER)
    tasks["waits"].enqueue(MARKER)
    asyncio.run(price.aenqueue(MARKER))
    _enqueue_in_transaction(place, app, price)
    work(app)
    assert app.client.signal(job, "approval", {"by": MARKER})
    assert app.client.complete(delayed, {"price": MARKER}).result == {"price": MARKER}
    app.client.schedules.put("other", price.draft(MARKER), every=3600.0)
    assert app.client.schedules.run_now("other").payload == {"text": MARKER}
    work(app)

    whole = {"charged": {"charged": MARKER}, "approved": {"by": MARKER}, "price": {"price": MARKER}}
    assert app.client.result(job, timeout=0) == whole
    assert [one.payload for one in many] == [{"text": MARKER}] * 300
    found = dump(place)
    assert len(found) > 15
    assert "approval" in "".join(found.values()), "names are in the clear, so this is the right store"
    assert [table for table, rows in found.items() if MARKER in rows] == []


def _enqueue_in_transaction(place: Database, app: App, price: Any) -> None:
    if place.is_postgres:
        with psycopg.connect(place.url) as connection:
            job = price.using(connection=connection).enqueue(MARKER)
    else:
        with closing(sqlite3.connect(place.url.removeprefix("sqlite:///"))) as lite, lite:
            job = price.using(connection=lite).enqueue(MARKER)
    assert job.payload == {"text": MARKER}


def test_progress_is_encoded_apart_from_its_numbers(place: Database, make_app: MakeApp) -> None:
    app = make_app(FernetCodec(NEW))
    seen: list[Any] = []

    @app.task
    def slow(attempt: Attempt) -> None:
        attempt.progress(3, 10, MARKER)
        session.maintenance.progress()
        job = app.client.get(attempt.job.id)
        assert job is not None
        seen.append((job.progress, dump(place)["relet_jobs" if not place.is_postgres else "jobs"]))

    slow.enqueue()
    with inline_worker(app, None, None, {}) as worker:
        session = worker._session
        _run_all(worker, raise_errors=True)
    ((progress, rows),) = seen
    assert (progress.done, progress.total, progress.note) == (3, 10, MARKER)
    assert "$relet" in rows
    assert MARKER not in rows


def test_everything_that_a_client_returns_decodes(make_app: MakeApp) -> None:
    app = make_app(FernetCodec(NEW))
    tasks = order_tasks(app)
    first = tasks["price"].enqueue(MARKER)
    job = tasks["order"].using(depends_on=[first], target="t").enqueue(MARKER)
    work(app)
    client, payload = app.client, {"text": MARKER}
    behind = tasks["order"].using(target="t").enqueue(MARKER)
    work(app)
    view, (info,) = client.target("t"), client.targets().targets
    held = [one.payload for one in (view.holder, *view.line, info.holder) if one is not None]
    assert held == [payload] * 3
    client.cancel(behind)
    app.client.signal(job, "approval", {"by": MARKER})
    work(app)
    ended = client.get(job)
    assert ended is not None
    assert ended.payload == payload
    assert ended.result["approved"] == {"by": MARKER}
    assert [one.payload for one in client.jobs(task="order").jobs] == [payload] * 2
    details = client.describe(job)
    assert details.job.payload == payload
    assert [one.result for one in details.steps] == [{"charged": MARKER}, {"by": MARKER}]
    assert [one.result for one in client.steps(job)] == [{"charged": MARKER}, {"by": MARKER}]
    assert [one.result for one in client.dependencies(job)] == [{"price": MARKER}]
    assert client.chain(job).result == ended.result
    assert client.wait(job).result == ended.result
    assert client.acting_as("ada").get(job).payload == payload  # type: ignore[union-attr]
    assert asyncio.run(app.aclient.result(job)) == ended.result
    assert asyncio.run(app.aclient.wait(job)).payload == payload


def test_new_values_take_the_newest_key_and_old_ones_are_still_read(place: Database, make_app: MakeApp) -> None:
    def with_keys(*keys: bytes) -> tuple[App, Any]:
        app = make_app(FernetCodec(*keys))
        return app, order_tasks(app)["price"]

    _, price = with_keys(OLD)
    before = price.enqueue(MARKER)
    rotating, price = with_keys(NEW, OLD)
    after = price.enqueue(MARKER)
    work(rotating)
    assert rotating.client.results([before, after], timeout=0) == [{"price": MARKER}] * 2
    newest, _ = with_keys(NEW)
    found = newest.client.get(before)
    assert found is not None
    assert found.result == {"price": MARKER}, "the result was written with the newest key"
    assert isinstance(found.payload, Encoded)
    assert "its key does not decrypt it" in found.payload.problem
    assert newest.client.get(after).payload == {"text": MARKER}  # type: ignore[union-attr]


def test_values_of_several_codecs_and_of_none_live_side_by_side(make_app: MakeApp) -> None:
    plain = make_app()
    jobs = [order_tasks(plain)["price"].enqueue("plain")]
    for codecs in ([ZlibCodec(min_bytes=0)], [FernetCodec(NEW), ZlibCodec()], [FernetCodec(OLD, name="other")]):
        jobs.append(order_tasks(make_app(*codecs))["price"].enqueue("x" * 500))
    last = make_app(FernetCodec(NEW), ZlibCodec(), FernetCodec(OLD, name="other"))
    order_tasks(last)
    assert [codec_of(last.client.get(job).payload_json) for job in jobs] == [None, "zlib", "fernet", "other"]  # type: ignore[union-attr]
    work(last)
    texts = ["plain", *["x" * 500] * 3]
    assert last.client.results(jobs, timeout=0) == [{"price": text} for text in texts]


@pytest.mark.long
@pytest.mark.parametrize("is_async", [False, True])
def test_a_worker_without_the_key_fails_that_job_with_an_error_that_names_the_remedy(
    make_app: MakeApp, is_async: bool
) -> None:
    writer = make_app(FernetCodec(OLD), defaults={"backoff": SOON, "max_attempts": 2})
    ran: list[str] = []

    def register(app: App) -> Any:
        def note(text: str) -> None:
            ran.append(text)

        async def note_later(text: str) -> None:
            ran.append(text)

        return app.task(name="note")(note_later if is_async else note)

    job = register(writer).enqueue(MARKER)
    for codecs, complaint in (
        ((), "which this app does not have: add it to App(codecs=[...]); it has none"),
        ((FernetCodec(NEW),), "codec 'fernet' cannot decode the payload of job"),
    ):
        poor = make_app(*codecs)
        plain = register(poor).enqueue("works")
        for _ in range(3):
            work(poor)
        assert poor.client.wait(plain, timeout=0).state is State.SUCCEEDED
        failed = poor.client.get(job)
        assert failed is not None
        assert (failed.state, failed.attempt) == (State.FAILED, 2)
        assert complaint in (failed.error or "")
        assert "fernet" in (failed.error or "")
        assert "Traceback" not in (failed.error or "")
        with pytest.raises(JobFailed):
            poor.client.result(job, timeout=0)
        writer.client.resume(job)
    work(writer)
    assert ran == ["works", "works", MARKER]


def test_a_client_without_the_codec_shows_that_values_are_encoded(make_app: MakeApp) -> None:
    app, bare = make_app(FernetCodec(NEW)), make_app()
    job = order_tasks(app)["price"].enqueue(MARKER)
    work(app)
    (listed,) = bare.client.jobs().jobs
    assert repr(listed.payload) == repr(listed.result) == "<encoded with fernet>"
    assert listed.result.codec == "fernet"
    with pytest.raises(CodecError, match=f"the result of job {job.id} is encoded with codec 'fernet'"):
        bare.client.result(job)
    order_tasks(bare)
    with pytest.raises(CodecError, match="a result of price is encoded with codec 'fernet'"):
        bare.client.result(job)


IMITATIONS: list[Any] = [
    {"$relet": "fernet", "data": "aGVsbG8="},
    {"$relet": "plain", "data": ""},
    {"$relet": "fernet", "data": "aGVsbG8=", "more": 1},
    {"$relet": "fernet"},
    {"$relet": 1, "data": "aGVsbG8="},
    {"data": "aGVsbG8=", "$relet": "fernet"},
    [{"$relet": "fernet", "data": "aGVsbG8="}],
    '{"$relet":"fernet","data":"aGVsbG8="}',
]


@pytest.mark.long
@pytest.mark.parametrize("codecs", [[], [FernetCodec(NEW)], [ZlibCodec()]], ids=["none", "fernet", "zlib"])
def test_a_value_that_looks_like_an_encoded_one_comes_back_as_it_was(make_app: MakeApp, codecs: list[Codec]) -> None:
    app = make_app(*codecs)

    @app.task
    def echo(attempt: Attempt, value: Any, **others: Any) -> list[Any]:
        attempt.progress(1, note=json.dumps(IMITATIONS[0], separators=(",", ":")))
        return [attempt.step("step", lambda: value), attempt.wait_for("go"), others]

    @app.task
    def same(value: Any) -> Any:
        return value

    for value in IMITATIONS:
        job, direct = echo.enqueue(value, **{"$relet": "fernet", "data": "x"}), same.enqueue(value)
        app.client.signal(job, "go", value)
        work(app)
        assert app.client.result(job, timeout=0) == [value, value, {"$relet": "fernet", "data": "x"}]
        assert app.client.result(direct, timeout=0) == value
        found = app.client.get(direct)
        assert found is not None
        assert (found.payload, found.result) == ({"value": value}, value)
        assert [one.result for one in app.client.steps(job)] == [value, value]
        done = app.client.complete(same.using(delay=60).enqueue(1), value)
        assert done.result == value


def test_notes_that_look_like_encoded_ones_come_back_as_they_were() -> None:
    codecs = Codecs([FernetCodec(NEW), ZlibCodec()])
    for value in IMITATIONS:
        note = json.dumps(value, separators=(",", ":"))
        for name in (None, "fernet", "zlib"):
            assert note_of(codecs.encode_note(note, name), codecs) == note
    assert codecs.encode_note("plain words", None) == codecs.encode_note("plain words", "zlib") == "plain words"
    assert note_of(codecs.encode_note("words", "fernet")) == "encoded with fernet"


def test_values_that_a_store_got_from_elsewhere_never_break_a_list() -> None:
    strange = PREFIX + '"plain","data":"/w=="}'
    assert isinstance(value_of(strange), Encoded)
    assert isinstance(value_of(PREFIX + '"plain","data":"e3t7"}'), Encoded)
    assert displayed(PREFIX + '"a\\"<b>","data":""}') == '"encoded with a\\"<b>"'
    assert value_of(PREFIX + '"x","data":"no base64!"}') == {"$relet": "x", "data": "no base64!"}


# The choice of a codec


def test_a_task_chooses_among_the_codecs_of_its_app() -> None:
    app = App("sqlite:///:memory:", codecs=[FernetCodec(NEW), ZlibCodec(min_bytes=0)])

    @app.task
    def first() -> None: ...

    @app.task(codec="zlib")
    def second() -> None: ...

    @app.task(codec=None, aliases=["former"])
    def third() -> None: ...

    assert [task.codec for task in (first, second, third)] == ["fernet", "zlib", None]
    assert [app._is_encoded(name) for name in ("first", "second", "third", "former", "unknown")] == [
        *(True, True, False, False, True)
    ]
    assert app._is_encoded()
    with pytest.raises(InvalidInput, match="no codec of the app is named 'other'; it has fernet, zlib"):
        app.task(codec="other")(lambda_named("fourth"))


def test_an_app_may_encode_only_where_a_task_says_so() -> None:
    app = App("sqlite:///:memory:", codecs=[FernetCodec(NEW)], defaults={"codec": None})
    plain, encoded = app.task(lambda_named("plain")), app.task(codec="fernet")(lambda_named("encoded"))
    assert (codec_of(plain.draft().payload_json), codec_of(encoded.draft().payload_json)) == (None, "fernet")
    assert not App("sqlite:///:memory:")._is_encoded()
    with pytest.raises(InvalidInput, match="no codec of the app is named 'fernet'; it has none"):
        App("sqlite:///:memory:", defaults={"codec": "fernet"})


def lambda_named(name: str) -> Callable[..., Any]:
    def function(value: Any = None) -> None: ...

    function.__name__ = name
    return function


class Nameless:
    name = ""

    def encode(self, data: bytes) -> bytes:
        return data

    decode = encode


@pytest.mark.parametrize(
    ("codecs", "complaint"),
    [
        ([Nameless()], "a codec's name must be"),
        ([object()], "a codec's name must be"),
        ([ZlibCodec(), ZlibCodec()], "two codecs are named zlib"),
        ([ZlibCodec(name="plain")], "no codec can be named plain"),
    ],
)
def test_codecs_that_are_none_are_refused(codecs: list[Any], complaint: str) -> None:
    with pytest.raises(InvalidInput, match=complaint):
        App("sqlite:///:memory:", codecs=codecs)


def test_keys_that_are_none_are_refused_without_showing_them() -> None:
    with pytest.raises(InvalidInput, match="at least one key"):
        FernetCodec()
    with pytest.raises(InvalidInput) as refused:
        FernetCodec(NEW, "canary")
    assert "canary" not in str(refused.value)
    assert NEW.decode() not in repr(FernetCodec(NEW))


def test_a_missing_package_is_named(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "cryptography.fernet", None)
    with pytest.raises(ImportError, match=r"pip install 'relet\[encryption\]'"):
        FernetCodec(NEW)


def test_small_values_are_not_compressed_and_bombs_do_not_explode() -> None:
    codec = ZlibCodec()
    assert codec.encode(b"x" * 1023) is None
    assert codec.encode(bytes(range(256)) * 4) is not None
    packed = codec.encode(b"x" * 100_000)
    assert packed is not None
    assert codec.decode(packed) == b"x" * 100_000
    with pytest.raises(ValueError, match="cut off"):
        codec.decode(packed[:50])


class Broken:
    """Its key service does not answer."""

    name = "broken"
    works = True

    def encode(self, data: bytes, /) -> bytes:
        if not self.works:
            raise ConnectionError("no key service")
        return data

    def decode(self, data: bytes, /) -> bytes:
        return self.encode(data)


def test_a_codec_that_raises_while_it_encodes_does_not_lose_the_job(make_app: MakeApp) -> None:
    codec = Broken()
    app = make_app(codec, defaults={"backoff": Backoff(base=60, max=60)})

    @app.task
    def once() -> int:
        codec.works = False
        return 7

    job = once.enqueue()
    work(app)
    found = app.client.get(job)
    assert found is not None
    assert found.state is not State.FAILED, "it is tried again"
    assert "codec 'broken' cannot encode a value: ConnectionError: no key service" in (found.error or "")
    with pytest.raises(CodecError, match="cannot encode"):
        once.enqueue()


def test_a_codec_that_does_not_return_bytes_is_refused_before_anything_is_stored() -> None:
    class Texts(Broken):
        def encode(self, data: bytes, /) -> Any:
            return data.decode()

    with pytest.raises(CodecError, match=r"encode\(\) returned an object of type str, not bytes"):
        Codecs([Texts()]).encode("{}", "broken")


# Schedules, whose declarations are compared


def declared(make_app: MakeApp, *keys: bytes, text: str = MARKER) -> tuple[App, Any]:
    app = make_app(FernetCodec(*keys))
    price = order_tasks(app)["price"]
    app.schedule(every=3600, name="hourly", arguments={"text": text})(price)
    work(app)
    return app, price


def stored(place: Database) -> str:
    schema = f'"{place.schema}".schedules' if place.is_postgres else "relet_schedules"
    query = f"select definition from {schema}"
    if place.is_postgres:
        with psycopg.connect(place.url) as connection:
            return str(connection.execute(query.encode()).fetchone())
    with closing(sqlite3.connect(place.url.removeprefix("sqlite:///"))) as lite:
        return str(lite.execute(query).fetchone())


def test_a_schedule_keeps_the_changes_of_operators_until_its_declaration_changes(make_app: MakeApp) -> None:
    app, price = declared(make_app, OLD)
    app.client.schedules.put("hourly", price.draft("by hand"), every=60.0)
    for keys in ([OLD], [NEW, OLD]):
        again, _ = declared(make_app, *keys)
        found = again.client.schedules.get("hourly")
        assert found is not None
        assert (found.payload, found.every) == ({"text": "by hand"}, 60.0)
    changed, _ = declared(make_app, NEW, OLD, text="changed")
    assert changed.client.schedules.get("hourly").payload == {"text": "changed"}  # type: ignore[union-attr]


def test_a_declared_schedule_is_encoded_with_the_newest_key_by_the_next_worker(
    place: Database, make_app: MakeApp
) -> None:
    app, _ = declared(make_app, OLD)
    info = app.client.schedules.get("hourly")
    before = stored(place)
    rotating, _ = declared(make_app, NEW, OLD)
    assert stored(place) != before
    newest = make_app(FernetCodec(NEW))
    found = newest.client.schedules.get("hourly")
    assert found is not None
    assert info is not None
    assert (found.payload, found.next_at) == ({"text": MARKER}, info.next_at)
    assert rotating.client.schedules.run_now("hourly").payload == {"text": MARKER}


# Completion in a transaction, tests, operators


def test_a_handler_that_returns_the_result_of_its_completion_is_not_warned(
    make_app: MakeApp, caplog: pytest.LogCaptureFixture
) -> None:
    app = make_app(FernetCodec(NEW))

    @app.task
    def transfer(attempt: Attempt, other: bool) -> str:
        with attempt.transaction() as tx:
            tx.succeed(MARKER)
        return "other" if other else MARKER

    job = transfer.enqueue(False)
    work(app)
    assert app.client.result(job, timeout=0) == MARKER
    assert "returned something else" not in caplog.text
    transfer.enqueue(True)
    work(app)
    assert "returned something else" in caplog.text


def test_the_harness_compares_plain_values() -> None:
    app = App("sqlite:///:memory:", codecs=[FernetCodec(NEW)])
    tasks = order_tasks(app)
    with harness(app) as relet:
        tasks["price"].enqueue(MARKER)
        assert relet.assert_enqueued(tasks["price"], MARKER).payload == {"text": MARKER}
        relet.refute_enqueued(tasks["price"], "other")
        with pytest.raises(AssertionError, match=f"text is '{MARKER}', not 'other'"):
            relet.assert_enqueued(tasks["price"], "other")
        assert relet.perform(tasks["price"], "now") == {"price": "now"}
        assert tasks["price"].draft(MARKER).payload == {"text": MARKER}


def test_operators_see_by_which_codec_values_are_encoded(make_app: MakeApp) -> None:
    app = make_app(FernetCodec(NEW))
    order_tasks(app)["price"].enqueue(MARKER)
    work(app)
    (job,) = app.client._without_codecs().acting_as("ada").jobs().jobs
    assert app.redact(job.payload_json) == '"encoded with fernet"'
    assert isinstance(job.result, Encoded)
    assert isinstance(app.client._without_codecs().describe(job).chain.result, Encoded)
