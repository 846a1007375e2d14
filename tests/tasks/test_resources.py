"""Parameters that a worker fills in are no part of the payload; and which resources a process makes."""

from __future__ import annotations

from collections.abc import AsyncIterator, Iterator
from types import SimpleNamespace
from typing import Annotated, Any, NewType

import pytest

from relet import App, Attempt, InvalidInput, Worker, injected
from relet.errors import InvalidArguments


class Pool:
    pass


class Cache:
    pass


class Model:
    pass


Replica = Annotated[Pool, "replica"]
ApiKey = NewType("ApiKey", str)


@pytest.fixture
def app() -> App:
    return App("sqlite:///:memory:")


def made(app: App) -> list[str]:
    """The resources that a worker of this app makes, in order, without the names of the functions around them."""
    tasks = app.tasks.values()
    own = [task.signature for task in tasks if not task.process]
    others = [task.signature for task in tasks if task.process]
    return [one.name.rpartition(".")[2] for one in app._resources.for_worker(own, others)]


def test_an_injected_parameter_is_no_part_of_the_payload(app: App) -> None:
    @app.task
    def send(attempt: Attempt, to: str, urgent: bool = False, pool: Pool = injected, *, cache: Cache = injected) -> str:
        return to

    assert send.draft("ada", True).payload_json == '{"to":"ada","urgent":true}'
    assert send.arguments('{"to":"ada"}') == (("ada",), {})
    schema, _ = send.signature.schemas()
    assert "pool" not in str(schema)
    assert "cache" not in str(schema)
    assert send.signature.resources == {"pool": Pool, "cache": Cache}


def test_a_caller_cannot_pass_it(app: App) -> None:
    @app.task
    def send(to: str, pool: Pool = injected) -> None: ...

    with pytest.raises(InvalidArguments, match=r"send\(pool\): the worker fills in this parameter; leave it out"):
        send.draft("ada", pool=Pool())
    with pytest.raises(InvalidArguments, match="too many positional arguments"):
        send.draft("ada", Pool())
    with pytest.raises(InvalidArguments, match="'pool' is no parameter of this task; it has to"):
        send.signature.call_of({"to": "ada", "pool": {}})
    with pytest.raises(InvalidArguments, match="pool is no parameter"):
        send.arguments('{"to":"ada","pool":{}}')


def test_a_call_passes_it_itself(app: App) -> None:
    @app.task
    def send(to: str, pool: Any = injected) -> Any:
        return pool.size

    assert send("ada", pool=SimpleNamespace(size=5)) == 5
    with pytest.raises(AttributeError, match=r"a worker fills in this parameter with a resource; .* \.size"):
        send("ada")


def test_a_parameter_that_is_not_marked_is_told_how(app: App) -> None:
    with pytest.raises(InvalidInput, match=r"Pool cannot be converted from JSON; .* has the default `injected`"):

        @app.task
        def send(to: str, pool: Pool) -> None: ...


def test_arguments_do_not_depend_on_the_position_of_a_resource(app: App) -> None:
    with pytest.raises(InvalidInput, match=r"send\(urgent\) comes after pool, which the worker fills in"):

        @app.task
        def send(to: str, pool: Pool = injected, urgent: bool = False) -> None: ...

    with pytest.raises(InvalidInput, match=r"collect\(names\) comes after pool"):

        @app.task
        def collect(pool: Pool = injected, *names: str) -> None: ...

    with pytest.raises(InvalidInput, match=r"only\(pool\): write an injected parameter as `pool: Type = injected`"):

        @app.task
        def only(pool: Pool = injected, /) -> None: ...

    with pytest.raises(InvalidInput, match=r"unannotated\(pool\): write an injected parameter"):

        @app.task
        def unannotated(pool=injected) -> None: ...  # type: ignore[no-untyped-def]


def test_a_stored_argument_may_not_have_the_type_of_a_resource(app: App) -> None:
    @app.resource
    def key() -> ApiKey:
        return ApiKey("secret")

    @app.resource
    def name() -> str:
        return "shop"

    @app.task
    def send(to: str, key: ApiKey = injected) -> None: ...

    with pytest.raises(InvalidInput, match="task send takes to from its payload, but its type is that of a resource"):
        Worker(app)


def test_resources_are_made_after_those_that_they_take(app: App) -> None:
    @app.resource
    def start(cache: Cache) -> Iterator[None]:
        yield

    @app.resource
    async def cache(pool: Pool, replica: Replica) -> AsyncIterator[Cache]:
        yield Cache()

    @app.resource
    def pool() -> Iterator[Pool]:
        yield Pool()

    @app.resource
    async def replica() -> Replica:
        return Pool()

    @app.task
    def nothing() -> None: ...

    assert made(app) == ["pool", "replica", "cache", "start"]


def test_a_worker_leaves_out_those_that_only_its_children_need(app: App) -> None:
    @app.resource
    def pool() -> Pool:
        return Pool()

    @app.resource
    def cache() -> Cache:
        return Cache()

    @app.resource
    def model(pool: Pool, cache: Cache) -> Model:
        return Model()

    @app.task(process=True)
    def infer(model: Model = injected) -> None: ...

    @app.task
    def send(pool: Pool = injected) -> None: ...

    assert made(app) == ["pool"]

    @app.resource
    def warm(model: Model) -> None: ...

    assert made(app) == ["pool", "cache", "model", "warm"]
    assert [one.name.rpartition(".")[2] for one in app._resources.for_child(send.signature)] == made(app)


def test_resources_that_take_each_other_are_refused(app: App) -> None:
    @app.resource
    def pool(cache: Cache) -> Pool:
        return Pool()

    @app.resource
    def cache(pool: Pool) -> Cache:
        return Cache()

    @app.task
    def send() -> None: ...

    with pytest.raises(InvalidInput, match=r"take each other, .*: \S*pool takes \S*cache takes \S*pool$"):
        Worker(app)


def test_a_type_without_a_resource_is_refused(app: App) -> None:
    @app.task
    def send(pool: Pool = injected) -> None: ...

    with pytest.raises(InvalidInput, match=r"task send takes pool: \S*Pool, but no resource has this type.*: none"):
        Worker(app)

    @app.resource
    def pool(cache: Cache) -> Pool:
        return Pool()

    with pytest.raises(
        InvalidInput, match=r"resource \S*pool \(.*test_resources.py:\d+\) takes cache: \S*Cache, but no"
    ):
        Worker(app)


def test_two_resources_of_one_type_are_refused(app: App) -> None:
    @app.resource
    def first() -> Pool:
        return Pool()

    @app.resource
    def second() -> Iterator[Pool]:
        yield Pool()

    @app.task
    def send(pool: Pool = injected) -> None: ...

    with pytest.raises(
        InvalidInput, match=r"resource \S*first .* and resource \S*second .* both have the type \S*Pool"
    ):
        Worker(app)


def test_a_function_that_cannot_be_a_resource_is_refused(app: App) -> None:
    def unannotated():  # type: ignore[no-untyped-def]
        yield 1

    with pytest.raises(InvalidInput, match=r"resource \S*unannotated .*: annotate what it returns"):
        app.resource(unannotated)
    with pytest.raises(InvalidInput, match=r"cannot be a resource: write @app.resource above `def`"):
        app.resource(Pool)

    @app.resource
    def many(*pools: Pool) -> Cache:
        return Cache()

    @app.task
    def nothing() -> None: ...

    with pytest.raises(InvalidInput, match=r"resource \S*many .*: every parameter is a resource"):
        Worker(app)


def test_annotations_that_cannot_be_hashed_are_no_resources(app: App) -> None:
    @app.resource
    def pool() -> Pool:
        return Pool()

    @app.task
    def stored(number: Annotated[int, []]) -> None: ...

    Worker(app)

    @app.resource
    def odd() -> Annotated[Cache, []]:
        return Cache()

    with pytest.raises(InvalidInput, match=r"resource \S*odd .*: annotate what it returns"):
        Worker(app)


def test_an_annotation_that_is_never_defined_is_named(app: App) -> None:
    @app.task
    def send(pool: Undefined = injected) -> None: ...  # type: ignore[name-defined]  # noqa: F821

    with pytest.raises(InvalidInput, match=r"send\(pool\): the annotation Undefined cannot be resolved"):
        Worker(app)
