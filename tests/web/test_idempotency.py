"""The header Idempotency-Key: a request that is repeated with it has one effect and one answer."""

from __future__ import annotations

from typing import Any

import pytest

pytest.importorskip("starlette")

from tests.web.api_client import ApiClient

CHARGE = {"task": "charge", "payload": {"account": "acct-7", "cents": 500}}


def send(ask: ApiClient, method: str, path: str, key: str, body: Any = None, **more: Any) -> Any:
    options = {} if body is None else {"json": body}
    return ask.request(method, f"/api{path}", headers={"Idempotency-Key": key}, **options, **more)


def test_a_job_is_enqueued_once(ask: ApiClient) -> None:
    first, second = (send(ask, "POST", "/jobs", "k", CHARGE) for _ in range(2))
    assert (first.status_code, second.status_code) == (201, 201)
    assert second.json() == first.json()
    assert len(ask("GET", "/jobs")["jobs"]) == 1


def test_a_verb_has_the_answer_of_the_first_whatever_happened_since(ask: ApiClient) -> None:
    job = ask.enqueue(delay=3600)
    paused = send(ask, "POST", f"/jobs/{job['id']}/pause", "k")
    assert paused.json()["state"] == "paused"
    ask("POST", f"/jobs/{job['id']}/resume")
    again = send(ask, "POST", f"/jobs/{job['id']}/pause", "k")
    assert (again.status_code, again.json()["state"]) == (paused.status_code, "paused")
    assert ask("GET", f"/jobs/{job['id']}")["state"] == "pending"


def test_the_same_key_with_a_different_body_or_path_is_refused(ask: ApiClient) -> None:
    send(ask, "POST", "/jobs", "k", CHARGE)
    other = send(ask, "POST", "/jobs", "k", {**CHARGE, "priority": 5})
    assert other.status_code == 422
    assert other.json()["type"].endswith(":idempotency-conflict")
    job = ask.enqueue()
    assert send(ask, "POST", f"/jobs/{job['id']}/cancel", "k").status_code == 422
    assert ask("GET", f"/jobs/{job['id']}")["state"] == "queued"


def test_a_delete_and_a_bulk_action_can_be_repeated(ask: ApiClient) -> None:
    job = ask.enqueue()
    assert [send(ask, "DELETE", f"/jobs/{job['id']}", "d").status_code for _ in range(2)] == [204, 204]
    for _ in range(3):
        ask.enqueue(queue="q")
    body = {"action": "cancel", "filter": {"queue": "q"}}
    first, second = (send(ask, "POST", "/jobs/bulk", "b", body).json() for _ in range(2))
    assert (first["done"], second["done"]) == (3, 3)


@pytest.mark.parametrize("key", ["x" * 513, "a\tb"])
def test_a_key_that_is_no_key_is_refused(ask: ApiClient, key: str) -> None:
    answer = send(ask, "POST", "/jobs", key, CHARGE)
    assert answer.status_code == 422
    assert answer.json()["errors"][0]["where"] == "header.Idempotency-Key"


def test_the_document_tells_of_the_header(ask: ApiClient) -> None:
    paths = ask("GET", "/openapi.json")["paths"]
    for path, operations in paths.items():
        for method, operation in operations.items():
            named = [one["name"] for one in operation.get("parameters", []) if one["in"] == "header"]
            assert named == ([] if method == "get" else ["Idempotency-Key"]), path
