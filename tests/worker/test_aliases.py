"""Tasks that were renamed while jobs waited under their old names."""

from __future__ import annotations

import pytest

from relet import App, InvalidInput
from tests.worker.working import over, working


def test_a_job_of_an_earlier_name_runs(app: App) -> None:
    def greet(name: str) -> str:
        return f"hello {name}"

    old = App(app._url, schema=app._schema)
    old._stores = app._stores  # the same store, also in memory
    old._client._bind()
    job = old.task(name="say_hello")(greet).enqueue("Ada")
    app.task(aliases=["say_hello", "welcome"])(greet)
    with working(app):
        over(app, job)
    assert app.client.result(job, timeout=0) == "hello Ada"
    found = app.client.get(job)
    assert found is not None
    assert found.task == "say_hello", "the job keeps its name"


def test_the_earlier_name_finds_the_task_but_is_no_separate_task() -> None:
    app = App("sqlite:///:memory:")

    @app.task(aliases=["before"])
    def now() -> None: ...

    assert app.lookup("before") is now
    assert list(app.tasks) == ["now"]
    assert now.enqueue().task == "now"


@pytest.mark.parametrize("name", ["now", "before"])
def test_an_earlier_name_cannot_be_used_again(name: str) -> None:
    app = App("sqlite:///:memory:")

    @app.task(name="now", aliases=["before"])
    def first() -> None: ...

    with pytest.raises(InvalidInput, match=f"two tasks are named {name}"):

        @app.task(name="other", aliases=[name])
        def second() -> None: ...

    with pytest.raises(InvalidInput, match=f"two tasks are named {name}"):

        @app.task(name=name)
        def third() -> None: ...


@pytest.mark.parametrize("aliases", ["before", [7], ["no spaces"]])
def test_wrong_aliases_are_refused(aliases: object) -> None:
    app = App("sqlite:///:memory:")
    with pytest.raises(InvalidInput, match="alias"):

        @app.task(aliases=aliases)  # type: ignore[call-overload, untyped-decorator]
        def work() -> None: ...
