"""Stores that are unreachable or refuse writes: a clear error in time, no job lost, and no password in the output."""

from __future__ import annotations

import logging
import time
import traceback
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from functools import partial
from pathlib import Path
from typing import Any
from urllib.parse import urlsplit

import psycopg
import pytest

from relet import App, InvalidInput, ReletError, StoreUnavailable
from relet._store import store as store_module
from relet._store.retry import RetryFor
from relet.errors import StoreError, StoreRefused
from tests.databases import Database, inventory
from tests.store.proxy import refusing

CANARY = "c4n4ry"


@pytest.fixture(autouse=True)
def _short_timeouts(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(store_module, "DEFAULT_RETRY", RetryFor(0.3))


@pytest.fixture(autouse=True)
def _everything_is_logged(caplog: pytest.LogCaptureFixture) -> None:
    caplog.set_level(logging.DEBUG)


def called(url: str, options: dict[str, Any], method: str) -> Any:
    return getattr(App(url, **options).client, method)()


def uses(url: str, **options: Any) -> Iterator[tuple[str, Callable[[], Any]]]:
    """Every use of a URL: making the app, and the ways to use it for the first time."""
    yield "App", lambda: App(url, **options)
    for word in ("migrate", "count", "queues"):
        yield word, partial(called, url, options, word)


def complaint(use: Callable[[], Any]) -> tuple[BaseException | None, str]:
    """The exception that `use` raises, and everything that is displayed of it."""
    try:
        use()
    except Exception as error:
        output = "".join([str(error), repr(error), traceback.format_exc(), repr(error.args), str(vars(error))])
        return error, output
    return None, ""


# passwords


URLS = {
    "closed port": f"postgresql://ada:{CANARY}@127.0.0.1:1/shop",
    "unknown host": f"postgresql://ada:{CANARY}@nowhere.invalid/shop",
    "encoded": f"postgresql://ada:%63{CANARY[1:]}%40@127.0.0.1:1/shop",
    "several hosts": f"postgresql://ada:{CANARY}@127.0.0.1:1,127.0.0.1:2/shop",
    "as a parameter": f"postgresql://ada@127.0.0.1:1/shop?password={CANARY}",
    "as a parameter misspelt": f"postgresql://ada@127.0.0.1:1/shop?pasword={CANARY}",
    "with an @": f"postgresql://ada:x@{CANARY}@127.0.0.1:1/shop",
    "with a slash": f"postgresql://ada:x/{CANARY}@127.0.0.1:1/shop",
    "with a question mark": f"postgresql://ada:x?{CANARY}@127.0.0.1:1/shop",
    "with a hash": f"postgresql://ada:x#{CANARY}@127.0.0.1:1/shop",
    "with a colon": f"postgresql://ada:x:{CANARY}@127.0.0.1:1/shop",
    "with a bracket": f"postgresql://ada:x[{CANARY}@127.0.0.1:1/shop",
    "with a bad escape": f"postgresql://ada:%zz{CANARY}@127.0.0.1:1/shop",
    "with a blank": f"postgresql://ada:x {CANARY}@127.0.0.1:1/shop",
    "bad port": f"postgresql://ada:{CANARY}@127.0.0.1:http/shop",
    "bad address": f"postgresql://ada:{CANARY}@[::1/shop",
    "words of libpq": f"password={CANARY} host=127.0.0.1 port=1",
    "no scheme": f"ada:{CANARY}@127.0.0.1/shop",
    "one slash": f"postgresql:/a:{CANARY}@db/shop",
    "another database": f"mysql://ada:{CANARY}@127.0.0.1/shop",
    "a driver's scheme": f"postgresql+psycopg://ada:{CANARY}@127.0.0.1:1/shop",
    "sqlite with a host": f"sqlite://ada:{CANARY}@127.0.0.1/shop.db",
    "sqlite with a parameter": f"sqlite:///shop.db?password={CANARY}",
}


@pytest.mark.parametrize("url", URLS.values(), ids=URLS.keys())
def test_no_password_is_displayed_whatever_is_wrong(
    url: str, caplog: pytest.LogCaptureFixture, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    errors = []
    for name, use in uses(url):
        error, output = complaint(use)
        errors.append(error)
        assert CANARY not in output, f"{name} shows it: {error}"
        assert error is None or isinstance(error, ReletError), f"{name}: {error!r}"
    assert all(errors[1:]), "every use says that something is wrong"
    assert CANARY not in caplog.text
    if errors[0] is None:
        assert CANARY not in repr(App(url)) + repr(App(url)._store())
    assert list(tmp_path.iterdir()) == []


@pytest.mark.parametrize("says", ['password authentication failed for user "ada"', "no, {password} is not it"])
def test_a_wrong_password_is_reported_and_not_displayed(says: str, caplog: pytest.LogCaptureFixture) -> None:
    with refusing(says) as port:
        url = f"postgresql://ada:{CANARY}@127.0.0.1:{port}/shop"
        for name, use in uses(url):
            error, output = complaint(use)
            assert CANARY not in output, name
            if name != "App":
                assert isinstance(error, StoreError)
                assert f"postgresql://ada@127.0.0.1:{port}/shop" in str(error)
                assert "password authentication failed" in str(error) or "no, *** is not it" in str(error)
    assert CANARY not in caplog.text


def test_a_wrong_password_is_reported_at_once() -> None:
    """A retry would not help: a user should not wait ten seconds to learn of a typing error."""
    with refusing('password authentication failed for user "ada"') as port, pytest.MonkeyPatch.context() as patch:
        patch.setattr(store_module, "DEFAULT_RETRY", RetryFor(10.0))
        began = time.monotonic()
        with pytest.raises(StoreError, match="password authentication failed"):
            App(f"postgresql://ada:{CANARY}@127.0.0.1:{port}/shop").client.count()
        assert time.monotonic() - began < 5


def test_a_password_is_not_displayed_by_the_listening_thread(caplog: pytest.LogCaptureFixture) -> None:
    with refusing("no, {password} is not it") as port:
        store = App(f"postgresql://ada:{CANARY}@127.0.0.1:{port}/shop")._store()
        with store.notifier.subscribe("done") as sleeper:
            assert not sleeper.wait(0.3)
        store.close()
    assert "listening to" in caplog.text
    assert CANARY not in caplog.text


# PostgreSQL that is unreachable, or refuses writes


def test_a_host_that_does_not_answer_says_where(caplog: pytest.LogCaptureFixture) -> None:
    with pytest.raises(StoreUnavailable, match=r"cannot connect to postgresql://ada@127\.0\.0\.1:1/shop: .*refused"):
        App("postgresql://ada@127.0.0.1:1/shop").client.migrate()
    with pytest.raises(StoreUnavailable, match=r"nowhere\.invalid"):
        App("postgresql://ada@nowhere.invalid/shop").client.count()


def test_an_unknown_database_says_so(pg_database: Database) -> None:
    url = urlsplit(pg_database.url)._replace(path="/does_not_exist").geturl()
    for name, use in uses(url):
        if name != "App":
            with pytest.raises(StoreRefused, match='database "does_not_exist" does not exist'):
                use()


@contextmanager
def role(database: Database, *settings: str) -> Iterator[str]:
    """The URL of a separate role, with privileges on the schema and with settings."""
    name = f"r_{database.schema}"
    rights = [
        f"create role {name} login",
        f"grant usage on schema {database.schema} to {name}",
        f"grant all on all tables in schema {database.schema} to {name}",
        f"grant all on all sequences in schema {database.schema} to {name}",
        *(f"alter role {name} set {setting}" for setting in settings),
    ]
    with psycopg.connect(database.url, autocommit=True) as connection:
        for statement in rights:
            connection.execute(statement.encode())
        try:
            yield database.url.replace("postgres@", f"{name}@", 1)
        finally:
            connection.execute(f"drop owned by {name}; drop role {name}".encode())


@pytest.mark.long
@pytest.mark.parametrize("any_session", [False, True], ids=["as given", "target_session_attrs=any"])
def test_a_database_that_only_reads_says_so(pg_database: Database, any_session: bool) -> None:
    with role(pg_database, "default_transaction_read_only = on") as url:
        app = App(url + ("&target_session_attrs=any" if any_session else ""), schema=pg_database.schema)

        @app.task
        def work() -> None: ...

        before = inventory(pg_database.app()._store())
        for use in (work.enqueue, lambda: work.using(unique="k").enqueue(), app.client.migrate):
            with pytest.raises(StoreUnavailable, match="read-only"):
                use()
        app.close()
        assert inventory(pg_database.app()._store()) == before


def test_a_role_without_privileges_is_refused(pg_database: Database) -> None:
    name = f"n_{pg_database.schema}"
    with psycopg.connect(pg_database.url, autocommit=True) as connection:
        connection.execute(f"create role {name} login".encode())
        try:
            app = App(pg_database.url.replace("postgres@", f"{name}@", 1), schema=pg_database.schema)
            with pytest.raises(StoreRefused, match="permission denied"):
                app.client.count()
            app.close()
            app = App(pg_database.url.replace("postgres@", f"{name}@", 1), schema=f"{pg_database.schema}_new")
            with pytest.raises(StoreRefused, match="permission denied"):
                app.client.migrate()
            app.close()
        finally:
            connection.execute(f"drop role {name}".encode())


def test_a_full_disk_of_the_server_is_reported_and_nothing_is_stored(pg_database: Database) -> None:
    app = pg_database.app()

    @app.task
    def work() -> None: ...

    work.enqueue()
    before = inventory(app._store())
    with psycopg.connect(pg_database.url) as connection:
        connection.execute(
            f"create function {pg_database.schema}.no_room() returns trigger language plpgsql as $$ begin"
            " raise exception 'could not extend file: No space left on device' using errcode = '53100'; end $$".encode()
        )
        connection.execute(
            f"create trigger no_room before insert on {pg_database.schema}.jobs"
            f" for each row execute function {pg_database.schema}.no_room()".encode()
        )
    try:
        for use in (work.enqueue, lambda: work.using(unique="k", target="t").enqueue()):
            with pytest.raises(StoreUnavailable, match="No space left on device"):
                use()
        assert inventory(app._store()) == before
    finally:
        with psycopg.connect(pg_database.url) as connection:
            connection.execute(f"drop function {pg_database.schema}.no_room cascade".encode())
    work.enqueue()
    app.close()


def test_an_app_that_waited_for_its_database_in_vain_works_once_it_is_there(pg_database: Database) -> None:
    app = pg_database.app()
    server = app._store()._server  # type: ignore[attr-defined]
    good, server.url = server.url, "postgresql://127.0.0.1:1/nothing"
    with pytest.raises(StoreUnavailable):
        app.client.count()
    server.url = good
    assert app.client.count() == 0
    app.close()


# URLs


BAD_URLS: dict[str, tuple[Any, str]] = {
    "another database": ("mysql://h/db", "starts with sqlite:// or postgresql://, not 'mysql'"),
    "a path": ("shop.db", "starts with sqlite://"),
    "two slashes": ("sqlite://shop.db", "start the path with three slashes"),
    "unknown option": ("sqlite:///shop.db?mode=ro", "unknown options in the SQLite URL: mode"),
    "unknown word": ("sqlite:///shop.db?synchronous=off", "synchronous must be one of FULL, NORMAL, EXTRA"),
    "a Path": (Path("shop.db"), "URL"),
    "a number": (5, "URL"),
}


@pytest.mark.parametrize(("url", "says"), BAD_URLS.values(), ids=BAD_URLS.keys())
def test_a_url_that_names_no_store_is_refused_at_once(url: Any, says: str) -> None:
    with pytest.raises(InvalidInput, match=says):
        App(url)


def test_a_url_that_libpq_does_not_understand_is_reported() -> None:
    with pytest.raises(
        StoreError, match=r"invalid PostgreSQL URL: postgresql://h/db .*invalid URI query parameter.*sslmod\b"
    ):
        App("postgresql://h/db?sslmod=require").client.count()
