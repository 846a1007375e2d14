"""Lost connections, to the server and to a proxy: no job is stored twice, no acknowledged job is lost."""

from __future__ import annotations

import threading
import time
import uuid
from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import closing, contextmanager
from typing import Any

import psycopg
import pytest

from relet import App, Job, State
from relet._core.filters import Filter
from relet._store.flows import search
from relet._store.retry import DEFAULT_RETRY, RetryFor, Transient
from relet._store.sqlite import SQLiteStore
from relet.errors import StoreBusy, StoreError, StoreUnavailable
from tests.databases import Database, inventory
from tests.harness import harness_of
from tests.servers import PrivateServer
from tests.store.proxy import Proxy, proxy_to


def make_app(url: str, schema: str) -> App:
    app = App(url, schema=schema)

    @app.task
    def work(value: Any = None) -> Any:
        return value

    return app


@pytest.fixture
def named(pg_database: Database) -> str:
    """An application name that only the connections of this test have."""
    return f"a_{uuid.uuid4().hex[:12]}"


@pytest.fixture
def app(pg_database: Database, named: str) -> Iterator[App]:
    app = make_app(f"{pg_database.url}&application_name={named}", pg_database.schema)
    yield app
    app.close()


@pytest.fixture
def kill(pg_database: Database, named: str) -> Iterator[Callable[[], int]]:
    """Terminate every connection of this test's app."""
    with psycopg.connect(pg_database.url, autocommit=True) as connection:

        def terminate() -> int:
            query = "select count(pg_terminate_backend(pid)) from pg_stat_activity where application_name = %s"
            (number,) = connection.execute(query, (named,)).fetchone() or (0,)
            return int(number)

        yield terminate


# terminated


def test_connections_that_were_terminated_meanwhile_are_replaced(app: App, kill: Callable[[], int]) -> None:
    work = app.lookup("work")
    with ThreadPoolExecutor(8) as threads:
        jobs: list[Job[Any]] = list(threads.map(work.enqueue, range(40)))
    for use in (
        lambda: jobs.append(work.enqueue("plain")),
        lambda: jobs.append(work.using(unique="k", target="t").enqueue("with a key")),
        lambda: app.client.cancel(jobs[0]),
        lambda: app.client.get(jobs[0]),
        lambda: app.client.queues(),
        lambda: app.client.migrate(),
        lambda: app.client.delete(jobs.pop(0)),
    ):
        assert kill() > 0
        use()
    assert app.client.count() == len(jobs)
    assert app.client.count(target="t") == 1


@pytest.mark.long
def test_connections_terminated_in_the_middle_leave_each_job_once(app: App, kill: Callable[[], int]) -> None:
    work = app.lookup("work")
    over = threading.Event()
    assert app.client.count() == 0  # it has connected once: otherwise it would take the first kill for a wrong address

    def killer() -> int:
        killed = 0
        for _ in range(40):  # not for ever: on a slow machine no client would make progress
            if over.wait(0.03):
                break
            killed += kill()
        return killed

    def enqueue(n: int) -> list[str]:
        if n % 3 == 0:
            return [work.using(unique=f"k{n}").enqueue(n).id]
        if n % 3 == 1:
            return [job.id for job in app.client.enqueue_many([work.draft(n), work.using(target="t").draft(n)])]
        return [work.enqueue(n).id]

    with ThreadPoolExecutor(5) as threads:
        killing = threads.submit(killer)
        try:
            stored = [id for ids in threads.map(enqueue, range(120)) for id in ids]
        finally:
            over.set()
        assert killing.result() > 3, "the test was over before it began"
    assert len(stored) == len(set(stored)) == 160
    assert app.client.count() == 160
    counts = inventory(app._store())
    assert (counts["jobs"], counts["keys"]) == (160, 40)


def test_a_waiting_caller_survives_the_loss_of_the_listening_connection(app: App, kill: Callable[[], int]) -> None:
    job = app.lookup("work").enqueue()
    other = app.lookup("work").enqueue()
    with ThreadPoolExecutor(1) as threads:
        waiting = threads.submit(app.client.result, job, timeout=30)
        for _ in range(3):
            threading.Event().wait(0.1)
            kill()
        app.client.complete(other)
        assert not waiting.done()
        app.client.complete(job, "done")
        assert waiting.result(20) == "done"


# cut off between a request and its answer


@pytest.fixture
def proxy(pg_database: Database) -> Iterator[Proxy]:
    with proxy_to(pg_database.url) as proxy:
        yield proxy


@pytest.fixture
def far(pg_database: Database, proxy: Proxy) -> Iterator[App]:
    """An app whose store is behind the proxy, connected already."""
    app = make_app(proxy.url, pg_database.schema)
    app.client.count()
    yield app
    app.close()


INSERT = b"\0enqueue/insert_one_"  # a prepared statement has the name of its file
INSERT_OF_MANY_KINDS = b".jobs (id, state, wait, queue"
COMMIT = b"commit\0"  # the whole statement: "read committed" stands in every begin
CUTS = {
    "insert not sent": ("cut_before", INSERT),
    "answer to the insert lost": ("cut_after", INSERT),
    "commit not sent": ("cut_before", COMMIT),
    "answer to the commit lost": ("cut_after", COMMIT),
}


def cut(proxy: Proxy, name: str, insert: bytes = INSERT) -> None:
    how, words = CUTS[name]
    getattr(proxy, how)(insert if words == INSERT else words)


@pytest.mark.parametrize("where", ["insert not sent", "answer to the insert lost"])
def test_a_plain_enqueue_that_is_cut_off_is_stored_once(far: App, proxy: Proxy, where: str) -> None:
    cut(proxy, where)
    job = far.lookup("work").enqueue("x")
    assert proxy.cuts == 1
    assert far.client.count() == 1
    assert far.client.get(job) is not None
    assert not job.existing, "this very call has made it"


@pytest.mark.parametrize("unique", [None, "k"], ids=["plain", "with a key"])
def test_a_job_that_ran_before_its_enqueue_was_repeated_does_not_run_again(
    far: App, proxy: Proxy, pg_database: Database, unique: str | None
) -> None:
    """Stored, claimed and finished, all between the loss of the answer and the second try."""
    worker = make_app(pg_database.url, pg_database.schema)
    worker.client.count()

    def run() -> None:
        (job,) = harness_of(worker).claim(1)
        harness_of(worker).succeed(job, '"done"')

    proxy.cut_after(COMMIT if unique else INSERT, run)
    job = far.lookup("work").using(unique=unique).enqueue("x")
    assert proxy.cuts == 1
    assert job.state is State.SUCCEEDED
    assert harness_of(worker).claim(1) == []
    assert far.client.count() == 1
    counts = inventory(far._store())
    assert (counts["jobs"], counts["finished"], counts["keys"]) == (0, 1, 0)
    worker.close()


@pytest.mark.parametrize("where", CUTS)
def test_an_enqueue_of_many_kinds_that_is_cut_off_is_stored_once(far: App, proxy: Proxy, where: str) -> None:
    work = far.lookup("work")
    first = work.enqueue("first")
    before = inventory(far._store())
    cut(proxy, where, INSERT_OF_MANY_KINDS)
    jobs = far.client.enqueue_many(
        [
            work.using(unique="k").draft(1),
            work.using(target="t").draft(2),
            work.using(depends_on=[first]).draft(3),
            work.draft(4),
        ]
    )
    assert proxy.cuts == 1
    after = inventory(far._store())
    grown = {table: after[table] - before[table] for table in after if after[table] != before[table]}
    assert grown == {"jobs": 4, "keys": 1, "dependencies": 1, "nudges": 2}
    assert [far.client.get(job).state for job in jobs] == ["queued", "pending", "pending", "queued"]  # type: ignore[union-attr]
    assert [job.existing for job in jobs] == [False] * 4, "this very call has made them"


VERBS: dict[str, tuple[Callable[[App, Job[Any]], Any], State]] = {
    "cancel": (lambda app, job: app.client.cancel(job), State.CANCELLED),
    "pause": (lambda app, job: app.client.pause(job), State.PAUSED),
    "resume": (lambda app, job: app.client.resume(job), State.PENDING),
    "run_now": (lambda app, job: app.client.run_now(job), State.PENDING),
    "complete": (lambda app, job: app.client.complete(job, "done"), State.SUCCEEDED),
}


@pytest.mark.parametrize("where", ["commit not sent", "answer to the commit lost"])
@pytest.mark.parametrize("verb", VERBS)
def test_a_verb_that_is_cut_off_takes_effect_once(far: App, proxy: Proxy, verb: str, where: str) -> None:
    """To the caller it succeeded, whether or not it had before it was repeated."""
    work = far.lookup("work")
    job = work.using(delay=3600).enqueue() if verb == "run_now" else work.enqueue()
    if verb == "resume":
        far.client.pause(job)
    call, state = VERBS[verb]
    cut(proxy, where)
    answer = call(far, job)
    assert proxy.cuts == 1
    assert answer.state is state
    assert far.client.get(job) == answer
    assert inventory(far._store())["jobs"] + inventory(far._store())["finished"] == 1


@pytest.mark.parametrize("where", ["commit not sent", "answer to the commit lost"])
def test_a_chain_that_is_cut_off_goes_on_once(far: App, proxy: Proxy, where: str) -> None:
    work = far.lookup("work")
    job, successor = work.enqueue(), work.using(unique="k").draft("next")
    cut(proxy, where)
    far.client.complete(job, continue_with=successor)
    assert [one.id for one in far.client.chain(job)] == [job.id, successor.id]
    assert far.client.count() == 2


@pytest.mark.parametrize("where", ["commit not sent", "answer to the commit lost"])
def test_a_delete_that_is_cut_off_is_not_an_error(far: App, proxy: Proxy, where: str) -> None:
    job = far.lookup("work").enqueue()
    cut(proxy, where)
    far.client.delete(job)
    assert far.client.count() == 0


def test_a_read_that_is_cut_off_is_repeated(far: App, proxy: Proxy) -> None:
    far.lookup("work").enqueue()
    proxy.cut_after(b"count(*)")
    assert far.client.count() == 1
    assert proxy.cuts == 1


def test_all_connections_cut_at_once_are_replaced(far: App, proxy: Proxy) -> None:
    with ThreadPoolExecutor(6) as threads:
        list(threads.map(far.lookup("work").enqueue, range(12)))
    proxy.cut_all()
    far.lookup("work").enqueue()
    assert far.client.count() == 13


# restarted


@pytest.mark.parametrize("how", ["SIGINT", "SIGKILL"])
def test_a_server_that_is_restarted_is_found_again(private_server: PrivateServer, how: str) -> None:
    app = make_app(private_server.dsn, "relet")
    app.client.migrate()
    work = app.lookup("work")
    with ThreadPoolExecutor(8) as threads:
        stored = list(threads.map(lambda n: work.enqueue(n).id, range(40)))
        waiting = threads.submit(app.client.result, stored[0], timeout=60)
        during = [threads.submit(work.enqueue, n) for n in range(20)]
        private_server.stop(how)
        late = threads.submit(work.enqueue, "while it was away")
        private_server.start()
        stored += [job.result(60).id for job in during] + [late.result(60).id]
        stored.append(work.enqueue("after").id)
        app.client.complete(stored[0], "done")
        assert waiting.result(60) == "done"
    assert len(stored) == len(set(stored)) == 62
    assert app.client.count() == 62, "acknowledged jobs are stored, and stored once"
    app.close()


@pytest.mark.long
def test_a_server_that_stays_down_raises_in_time(
    private_server: PrivateServer, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("relet._store.store.DEFAULT_RETRY", RetryFor(1.0))
    app = make_app(private_server.dsn, "relet")
    app.client.migrate()
    app.lookup("work").enqueue()
    private_server.stop("SIGQUIT")
    began = time.monotonic()
    with pytest.raises(StoreError, match="postgresql://"):
        app.lookup("work").enqueue()
    assert 1.0 <= time.monotonic() - began < 10
    private_server.start()
    assert app.client.count() == 1
    app.close()


# roles with their own settings


@contextmanager
def role(database: Database, settings: list[str]) -> Iterator[str]:
    name = f"s_{uuid.uuid4().hex[:12]}"
    with psycopg.connect(database.url, autocommit=True) as connection:
        connection.execute(f"create role {name} superuser login".encode())
        for setting in settings:
            connection.execute(f"alter role {name} set {setting}".encode())
        try:
            yield database.url.replace("postgres@", f"{name}@", 1)
        finally:
            connection.execute(f"drop owned by {name}; drop role {name}".encode())


SETTINGS = {
    "serializable": ["default_transaction_isolation = 'serializable'"],
    "repeatable read": ["default_transaction_isolation = 'repeatable read'"],
    "no search_path": ["search_path = ''"],
    "odd search_path": ["search_path = pg_temp, information_schema, nowhere"],
    "odd times": ["timezone = 'America/St_Johns'", "datestyle = 'German, DMY'", "intervalstyle = 'sql_standard'"],
    "odd texts": [
        "standard_conforming_strings = off",
        "bytea_output = 'escape'",
        "extra_float_digits = -15",
        "quote_all_identifiers = on",
    ],
    "latin": ["client_encoding = 'LATIN1'"],
    "odd plans": ["plan_cache_mode = force_generic_plan", "enable_nestloop = off", "enable_hashjoin = off", "jit = on"],
    "deferrable": ["default_transaction_deferrable = on", "idle_in_transaction_session_timeout = '1s'"],
}


@pytest.mark.filterwarnings("ignore:.*standard_conforming_strings")
@pytest.mark.parametrize("settings", SETTINGS.values(), ids=SETTINGS.keys())
def test_a_role_may_have_separate_settings(pg_database: Database, settings: list[str]) -> None:
    with role(pg_database, settings) as url, closing(make_app(url, pg_database.schema)) as app:
        work = app.lookup("work")
        before = time.time()
        text = "žluťoučký 日本 'quoted' \\ back\\\\slash"
        first = work.enqueue(text)
        assert abs(first.created_at.timestamp() - before) < 60
        later = work.using(delay=3600).enqueue()
        assert abs(later.run_at.timestamp() - before - 3600) < 60
        second = work.using(depends_on=[first], unique=text, target=text).enqueue(text)
        assert app.client.get(first) == first
        (claimed,) = harness_of(app).claim(1)
        assert app.lookup("work").arguments(claimed.payload_json) == ((text,), {})
        assert 20 < claimed.expires_at - time.time() < 40
        harness_of(app).succeed(claimed, '"done"')
        assert harness_of(app).promote_all() == [second.id]
        assert [one.id for one in harness_of(app).claim(1)] == [second.id]
        assert app.client.explain(second)[0].startswith("it runs")
        assert app.client.jobs(target=text).jobs[0].id == second.id
        app.client.complete(second, text)
        assert app.client.result(second, timeout=5) == text
        app.client.migrate()


def test_many_at_once_get_along_where_everything_is_serializable(pg_database: Database) -> None:
    with role(pg_database, SETTINGS["serializable"]) as url, closing(make_app(url, pg_database.schema)) as app:
        work = app.lookup("work")

        def life(n: int) -> None:
            work.using(target=f"t{n % 3}").enqueue(n)
            work.using(unique=f"k{n % 5}").enqueue(n)
            harness_of(app).promote_all()
            for job in harness_of(app).claim(2, worker=f"w{n}"):
                harness_of(app).succeed(job)

        with ThreadPoolExecutor(4) as threads:
            list(threads.map(life, range(24)))
        assert app.client.count() >= 24


def test_the_pools_own_connection_is_good_after_a_failed_transaction(app: App) -> None:
    store = app._store()
    work = app.lookup("work")
    existing = work.using(unique="k").enqueue()
    for _ in range(15):  # more often than there are connections
        with pytest.raises(LookupError):
            store.run(_fails)
    assert work.using(unique="k").enqueue().id == existing.id
    assert store.run(search.count, Filter()) == 1


def _fails() -> Any:
    from relet._store.query import BEGIN, read

    yield BEGIN
    yield read("limits/queue_settings")
    raise LookupError("in the middle of a transaction")


@pytest.mark.parametrize(("error", "counts"), [(StoreBusy, [0, 1, 2, 3, 4, 5]), (StoreUnavailable, [0, 1, 2, 2, 2, 2])])
def test_a_lost_connection_prolongs_the_next_tries_twice_at_most(
    error: type[StoreBusy | StoreUnavailable], counts: list[int]
) -> None:
    """Six of them in a row let a call wait for a dead connection for 48 s. Found by torture, seed 301."""
    found: list[int] = []

    def work(may_be_committed: bool, failures: int) -> None:
        found.append(failures)
        if len(found) < len(counts):
            raise Transient(error("for a test"), may_be_committed=False)

    with closing(SQLiteStore(None)) as store:
        store.retry(DEFAULT_RETRY, work)
    assert found == counts
