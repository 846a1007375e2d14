"""Requests that the API refuses: every response says what is wrong, where, and what to do; none is a 500."""

from __future__ import annotations

import logging
from typing import Any, NamedTuple

import pytest

pytest.importorskip("starlette")

from starlette.requests import Request
from starlette.responses import Response
from starlette.routing import Match

from relet import App
from relet._web.api import ENDPOINTS, Call, Endpoint, answer, api_routes, endpoint_of, live_scope
from relet._web.api.routing import still_encoded
from relet._web.problems import Refusal
from relet.errors import SchemaMismatch, StoreBusy
from tests.databases import Database
from tests.web.api_client import READ, ApiClient, charge


@pytest.fixture
def api_database() -> Database:
    """No store is asked for any of this."""
    return Database("memory", "sqlite:///:memory:", "relet")


CHARGE = {"task": "charge", "payload": {"account": "a", "cents": 5}}


def faults(problem: dict[str, Any]) -> dict[str, str]:
    return {fault["where"]: fault["what"] for fault in problem["errors"]}


def test_all_faults_are_reported_at_once_with_their_fields(ask: ApiClient) -> None:
    body = {
        **CHARGE,
        "priority": 1000,
        "quue": "x",
        "depends_on": ["no"],
        "backoff": {"base": -1, "bas": 0},
        "delay": "1",
    }
    found = faults(ask("POST", "/jobs", body, status=422))
    assert set(found) == {
        "body.quue", "body.priority", "body.depends_on[0]", "body.backoff.base", "body.backoff.bas", "body.delay"
    }  # fmt: skip
    assert found["body.quue"].startswith("is unknown; known fields are task, payload, args, queue, priority,")
    found = faults(ask("GET", "/jobs?limit=0&stat=failed&cursor=x&created_from=yesterday&limit=1", status=422))
    assert set(found) == {"query.limit", "query.stat", "query.cursor"}
    found = faults(ask("GET", "/jobs?created_from=yesterday", status=422))
    assert found == {"query.created_from": "must be a timestamp like 2026-03-01T12:00:00Z, not 'yesterday'"}
    assert "query.created_from" in faults(ask("GET", "/jobs?created_from=2026-03-01T12:00:00", status=422)), "no zone"


@pytest.mark.parametrize(
    ("payload", "where", "what"),
    [
        ({"account": "a", "cents": "5"}, "body.payload.cents", "Expected `int`, got `str`"),
        ({"account": "a", "cents": 5, "tags": ["a", 1]}, "body.payload.tags[1]", "Expected `str`, got `int`"),
        ({"account": "a"}, "body.payload", "missing a required argument: 'cents'"),
        ({"account": "a", "cents": 5, "cent": 6}, "body.payload.cent", "is no parameter of this task; it has account"),
        ({"account": "a\0", "cents": 5}, "body.payload.account", "contains a NUL character"),
        ({"account": "a", "cents": 2**70}, "body.payload.cents", "an integer of more than 64 bits"),
        ({"account": "x" * 300_000, "cents": 5}, "body.payload", "the limit is 262,144"),
    ],
)
def test_a_payload_is_checked_by_the_annotations_of_its_task(
    ask: ApiClient, api_app: App, payload: dict[str, Any], where: str, what: str
) -> None:
    found = faults(ask("POST", "/jobs", {"task": "charge", "payload": payload}, status=422))
    assert list(found) == [where]
    assert what in found[where]
    assert api_app.client.count() == 0


def test_a_task_that_the_app_does_not_know_is_refused_with_those_that_are_near(ask: ApiClient) -> None:
    problem = ask("POST", "/jobs", {"task": "chrage"}, status=422)
    assert problem["type"] == "urn:relet:problem:unknown-task"
    assert problem["detail"] == "This app has no task 'chrage'. Did you mean charge?"


@pytest.mark.parametrize(
    ("content", "status"),
    [
        (b"", 400),
        (b"{", 400),
        (b'{"task": "charge", "payload": {"a": NaN}}', 400),
        (b'{"task": "charge", "payload": {"a": "\\ud800"}}', 400),
        (b'{"task": "\xff"}', 400),
        (b'{"task": "charge", "payload": {"a": ' + b"[" * 100_000 + b"]" * 100_000 + b"}}", 400),
        (b'{"task": "charge", "payload": {"account": ' + b"[" * 70 + b"]" * 70 + b', "cents": 5}}', 422),
        (b'{"task": "charge", "payload": {"account": "a", "cents": 1' + b"0" * 5000 + b"}}", 422),
        (b'{"task": "charge", "payload": {"account": "a", "cents": 1e999}}', 422),
        (b'{"task": "charge", "priority": 1' + b"0" * 400 + b"}", 422),
        (b'["charge"]', 422),
        (b"null", 422),
    ],
)
def test_a_body_that_is_no_json_or_no_object_is_refused(ask: ApiClient, content: bytes, status: int) -> None:
    ask("POST", "/jobs", status=status, content=content, headers={"content-type": "application/json"})


@pytest.mark.parametrize(
    "sent", [None, "text/plain", "application/x-www-form-urlencoded", "jsonapplication/json", "x" * 300]
)
def test_a_body_that_does_not_say_that_it_is_json_is_refused(ask: ApiClient, sent: str | None) -> None:
    headers = {} if sent is None else {"content-type": sent}
    problem = ask("POST", "/jobs", status=415, content=b'{"task": "total"}', headers=headers)
    assert "Content-Type: application/json" in problem["detail"]
    for good in ("application/json; charset=utf-8", "application/merge-patch+json"):
        ask("POST", "/jobs", status=201, content=b'{"task": "total"}', headers={"content-type": good})


def test_where_nothing_is_to_be_sent_nothing_is_taken(ask: ApiClient, api_app: App) -> None:
    job = charge(api_app)
    ask("POST", f"/jobs/{job.id}/cancel", {"chain": True}, status=422)
    ask("POST", f"/jobs/{job.id}/cancel", {})


@pytest.mark.parametrize(
    "options",
    [
        {"delay": 5, "run_at": "2030-01-01T00:00:00Z"},
        {"unique_for": 5},
        {"replace": True},
        {"run_at": "2130-01-01T00:00:00Z"},
        {"run_at": "2030-01-01T00:00:00"},
        {"run_at": "2030-02-30T00:00:00Z"},
        {"target": "a\nb"},
        {"target": "x" * 513},
        {"queue": "a b"},
        {"queue": "a\n"},
        {"group": "*"},
        {"payload": {}, "args": []},
    ],
)
def test_options_that_do_not_fit_are_refused(ask: ApiClient, options: dict[str, Any]) -> None:
    problem = ask("POST", "/jobs", {**CHARGE, **options}, status=422)
    assert problem["errors"][0]["where"].startswith("body")


def test_unknown_paths_are_not_found_and_other_methods_are_named(ask: ApiClient) -> None:
    ask("GET", "/nothing", status=404)
    ask("GET", "/jobs/no-id", status=404)
    ask("POST", "/queues/a%20b/pause", status=404)
    ask("GET", "/targets/%FF", status=404)
    for path, allowed in {"/jobs": "GET, POST", "/schedules/x": "DELETE, GET, PUT", "/jobs/bulk": "POST"}.items():
        answer = ask.request("PATCH", f"/api{path}")
        assert (answer.status_code, answer.headers["allow"]) == (405, allowed)
    assert ask.request("HEAD", "/api/jobs").status_code == 200


@pytest.mark.parametrize(
    "name", ["a/b", "ä", "100%", "?x", "..", ".", "%2F", "a b#c", "x/ticks", "pause", "/", "a//b", "+"]
)
def test_any_name_survives_its_way_through_a_path(ask: ApiClient, name: str) -> None:
    from urllib.parse import quote

    path = quote(name, safe="").replace(".", "%2E")  # browsers, and some others, take `..` for a way up
    body = {"task": "charge", "args": ["a", 1], "every": 60}
    assert ask("PUT", f"/schedules/{path}", body, status=201)["name"] == name
    assert ask("GET", f"/schedules/{path}")["name"] == name
    assert ask("GET", f"/targets/{path}")["target"] == name
    ask("POST", f"/schedules/{path}/run-now", status=201)
    assert len(ask("GET", f"/schedules/{path}/ticks")["ticks"]) == 1
    ask("DELETE", f"/schedules/{path}", status=204)


class Found(NamedTuple):
    endpoint: Endpoint
    path: dict[str, str]


def find(method: str, path: str) -> Found:
    """The endpoint that the routes find, and the values of its parameters."""
    scope = {**live_scope(f"/api{path}"), "method": method}

    async def handler(_: Request) -> Response:
        raise AssertionError("nothing is called")

    for route in api_routes(ENDPOINTS, lambda _: handler):
        match, more = route.matches(scope)
        if match is Match.FULL:
            return Found(endpoint_of({**scope, **more}), more["path_params"])
    raise Refusal("not-found", path)


def test_a_path_that_was_decoded_on_the_way_is_understood_where_that_is_possible() -> None:
    assert find("POST", "/queues/a/b/pause").path == {"queue": "a/b"}
    assert find("POST", "/queues/a%2Fb/pause/").path == {"queue": "a/b"}
    assert find("GET", "/jobs/count").endpoint.name == "count_jobs"
    assert find("GET", "/targets/jobs/count").path == {"target": "jobs/count"}
    with pytest.raises(Refusal):
        find("GET", "/jobs//attempts")


def test_a_path_has_one_meaning_whatever_the_method(ask: ApiClient) -> None:
    """`x/ticks` could be read as the name of a schedule, which DELETE would remove."""
    with pytest.raises(Refusal, match="Use GET") as refused:
        find("DELETE", "/schedules/x/ticks")
    assert refused.value.headers == {"Allow": "GET"}
    assert ask.request("DELETE", "/api/schedules/x/ticks").status_code == 405
    assert find("DELETE", "/schedules/x%2Fticks").path == {"name": "x/ticks"}
    assert find("DELETE", "/schedules/a/b/ticks").path == {"name": "a/b/ticks"}, "only one reading has this method"
    assert find("POST", "/schedules/a/b/pause").path == {"name": "a/b"}
    with pytest.raises(Refusal) as refused:
        find("PATCH", "/schedules/a/b/pause")
    assert refused.value.headers == {"Allow": "DELETE, GET, POST, PUT"}


def test_a_path_is_taken_apart_before_it_is_decoded_wherever_the_api_is_mounted() -> None:
    for sent, path, root in (
        (b"/queues/a%2Fb/pause", "/queues/a/b/pause", ""),
        (b"/o%20p/queues/a%2Fb/pause?x=1", "/o p/queues/a/b/pause", "/o p"),
    ):
        assert still_encoded(path, root, sent.partition(b"?")[0]) == "/queues/a%2Fb/pause"
    assert still_encoded("/ops/queues/ä/pause", "/ops", None) == "/queues/%C3%A4/pause"
    # Who changes the path, and not what was sent, means the path.
    assert still_encoded("/queues/b/pause", "", b"/shop/queues/b/pause") == "/queues/b/pause"


# Errors behind the API


class Broken:
    """A client that cannot do anything."""

    def __init__(self, error: Exception) -> None:
        self._error = error

    def queues(self) -> Any:
        raise self._error


def queues(app: App, error: Exception) -> Any:
    import msgspec

    endpoint = find("GET", "/queues").endpoint
    reply = answer(endpoint, Call(app, Broken(error)))  # type: ignore[arg-type]
    return reply, msgspec.json.decode(reply.body)


@pytest.mark.parametrize(
    ("error", "kind"), [(StoreBusy("host 10.0.0.7"), "store-busy"), (SchemaMismatch("10.0.0.7"), "store-refused")]
)
def test_a_store_that_is_away_is_a_503_which_says_when_to_try_again(error: Exception, kind: str) -> None:
    reply, problem = queues(App("sqlite:///:memory:"), error)
    assert (reply.status, problem["type"]) == (503, f"urn:relet:problem:{kind}")
    assert reply.headers["Retry-After"] == "1"
    assert "10.0.0.7" not in problem["detail"]


def test_an_unforeseen_error_is_logged_under_an_id_and_reveals_nothing(caplog: pytest.LogCaptureFixture) -> None:
    with caplog.at_level(logging.ERROR):
        reply, problem = queues(App("sqlite:///:memory:"), RuntimeError("the password is hunter2"))
    assert reply.status == 500
    assert b"hunter2" not in reply.body
    assert problem["id"] in caplog.text
    assert "hunter2" in caplog.text


def test_an_answer_is_small_however_much_is_wrong_with_a_request(ask: ApiClient) -> None:
    many = {f"field_{number}": 0 for number in range(50_000)}
    found = ask("POST", "/jobs", {"task": "charge", **many}, status=422)
    assert len(found["errors"]) == 20
    assert found["detail"].endswith("(and 49999 more)")
    long = {"x" * 900_000: 1}
    answers = [
        ask.request("POST", "/api/jobs", json={"task": "charge", **long}),
        ask.request("POST", "/api/jobs", json={"task": "charge", "payload": {"account": "x", "cents": 1, **long}}),
        ask.request("POST", "/api/jobs", json={"task": "charge", "payload": long}),
        ask.request("POST", "/api/jobs/batch", json={"jobs": [{"task": "none", "queue": " "}] * 1000}),
        ask.request("POST", "/api/jobs/batch", json={"jobs": [{"y": 1}] * 5000}),
    ]
    for one in answers:
        assert one.status_code == 422
        assert len(one.content) < 20_000


def test_a_reader_may_scan_less_than_an_operator(ask: ApiClient) -> None:
    reader = {"authorization": f"Bearer {READ}"}
    for path in ("/jobs", "/jobs/count"):
        ask("GET", f"{path}?scan=1000000")
        ask("GET", f"{path}?scan=1000001", status=422)
        assert ask.request("GET", f"/api{path}?scan=100000", headers=reader).status_code == 200
        refused = ask.request("GET", f"/api{path}?scan=100001", headers=reader)
        assert (refused.status_code, "at most 100000" in refused.json()["detail"]) == (422, True)
