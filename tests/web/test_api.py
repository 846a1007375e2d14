"""The HTTP API from the point of view of its clients."""

from __future__ import annotations

import json
from datetime import UTC, datetime, timedelta
from typing import Any

import pytest

pytest.importorskip("starlette")

from relet import App, new_id
from relet._core.stats import BOUNDS
from tests.harness import harness_of
from tests.web.api_client import READ, ApiClient, charge

UNKNOWN_JOB = "0192f3a0-7c1e-7b3a-9d1f-2f6f5a1c0de1"


# Enqueue


def test_a_job_is_enqueued_with_all_its_options_and_found_under_its_location(ask: ApiClient, api_app: App) -> None:
    id = new_id()
    run_at = datetime.now(UTC).replace(microsecond=0) + timedelta(days=1)
    options = {
        "id": id, "queue": "a/b", "priority": 7, "target": "acct 7", "group": "k", "unique": "u", "unique_for": 60,
        "run_at": run_at.isoformat(), "max_attempts": 9, "timeout": 5, "on_expired": "fail",
        "backoff": {"base": 1, "jitter": False},
    }  # fmt: skip
    job = ask.enqueue(**options)
    assert {name: job[name] for name in ("id", "queue", "priority", "target", "group", "unique", "max_attempts")} == {
        name: options[name] for name in ("id", "queue", "priority", "target", "group", "unique", "max_attempts")
    }
    assert datetime.fromisoformat(job["run_at"]) == run_at
    assert (job["state"], job["wait"], job["existing"]) == ("pending", "time", False)
    assert job["payload"] == {"account": "acct-7", "cents": 500}
    stored = api_app.client.get(id)
    assert stored is not None
    assert (stored.queue, json.loads(stored.payload_json)) == ("a/b", job["payload"])


def test_the_same_id_again_is_the_same_job(ask: ApiClient) -> None:
    job = ask.enqueue(id=new_id())
    asked = {"task": "charge", "payload": {"account": "acct-7", "cents": 500}, "id": job["id"]}
    again = ask("POST", "/jobs", asked)
    assert (again["id"], again["existing"]) == (job["id"], True)
    answer = ask.request("POST", "/api/jobs", json={**asked, "id": new_id()})
    assert answer.headers["location"] == f"/api/jobs/{answer.json()['id']}"
    assert ask.request("GET", answer.headers["location"]).status_code == 200


def test_arguments_come_by_name_by_position_and_as_they_are_stored(ask: ApiClient) -> None:
    by_position = ask("POST", "/jobs", {"task": "charge", "args": ["acct-7", 5]}, status=201)
    assert by_position["payload"] == {"account": "acct-7", "cents": 5}
    as_stored = {"numbers": [1, 2], "names": {"a": "b"}}
    assert ask("POST", "/jobs", {"task": "total", "payload": as_stored}, status=201)["payload"] == as_stored


def test_many_jobs_are_enqueued_in_order_and_may_wait_for_each_other(ask: ApiClient) -> None:
    first = new_id()
    batch = [{"task": "total", "args": [1], "id": first}, {"task": "total", "args": [2], "depends_on": [first]}]
    jobs = ask("POST", "/jobs/batch", {"jobs": batch}, status=201)["jobs"]
    assert [job["payload"] for job in jobs] == [{"numbers": [1]}, {"numbers": [2]}]
    assert [job["wait"] for job in jobs] == [None, "jobs"]
    seen = ask("GET", f"/jobs/{jobs[1]['id']}")
    assert [one["chain"] for one in seen["dependencies"]] == [first]
    assert [one["id"] for one in ask("GET", f"/jobs/{first}")["dependents"]] == [jobs[1]["id"]]


def test_of_many_jobs_all_or_none_are_enqueued(ask: ApiClient, api_app: App) -> None:
    batch = [{"task": "total", "args": [1]}, {"task": "total", "args": ["x"]}]
    problem = ask("POST", "/jobs/batch", {"jobs": batch}, status=422)
    assert problem["errors"][0]["where"] == "body.jobs[1].payload.numbers[0]"
    batch = [{"task": "total", "args": [1]}, {"task": "total", "depends_on": [UNKNOWN_JOB]}]
    problem = ask("POST", "/jobs/batch", {"jobs": batch}, status=422)
    assert problem["errors"] == [{"where": "body.jobs[1].depends_on", "what": f"there is no job {UNKNOWN_JOB}"}]
    assert api_app.client.count() == 0


# Find and show


def test_jobs_are_found_by_filters_page_by_page_and_counted(ask: ApiClient, api_app: App) -> None:
    jobs = [charge(api_app, n, queue="q/1" if n % 2 else "q/2") for n in range(5)]
    api_app.client.cancel(jobs[0])
    page = ask("GET", "/jobs?limit=2")
    rest = ask("GET", f"/jobs?cursor={page['cursor']}")
    assert [job["id"] for job in page["jobs"] + rest["jobs"]] == sorted((job.id for job in jobs), reverse=True)
    assert (len(page["jobs"]), rest["cursor"]) == (2, None)
    assert len(ask("GET", "/jobs?queue=q/1")["jobs"]) == 2
    assert len(ask("GET", "/jobs?state=queued&state=cancelled&queue=q%2F2")["jobs"]) == 3
    assert ask("GET", "/jobs?created_to=2020-01-01T00:00:00Z")["jobs"] == []
    assert len(ask("GET", "/jobs", params={"created_from": "2020-01-01T00:00:00+02:00"})["jobs"]) == 5
    assert ask("GET", "/jobs/count?task=charge&state=queued")["count"] == 4
    assert ask("GET", "/jobs/count?limit=3")["count"] == 3


def test_a_job_shows_its_attempts_its_lease_and_why_it_does_not_run(ask: ApiClient, api_app: App) -> None:
    job = charge(api_app)
    (claimed,) = harness_of(api_app).claim(1, queues=("billing",), worker="w1")
    running = ask("GET", f"/jobs/{job.id}")
    assert (running["worker"], running["attempts"][0]["outcome"]) == ("w1", "running")
    assert datetime.fromisoformat(running["expires_at"]) > datetime.now(UTC)
    assert "worker w1 holds its lease" in running["explain"][0]
    harness_of(api_app).fail(claimed, "ValueError: no")
    assert [one["error"] for one in ask("GET", f"/jobs/{job.id}/attempts")["attempts"]] == ["ValueError: no"]
    assert "resume or cancel it" in ask("GET", f"/jobs/{job.id}/explain")["reasons"][0]
    (group,) = ask("GET", "/failures")["failures"]
    assert (group["task"], group["number"], group["example"]) == ("charge", 1, job.id)
    assert ask("GET", f"/jobs?error={group['search']}")["jobs"][0]["id"] == job.id


def test_numbers_of_any_size_arrive_as_they_are_stored(ask: ApiClient, api_app: App) -> None:
    job = charge(api_app, 2**63 - 1)
    assert f'"cents":{2**63 - 1}' in ask.request("GET", f"/api/jobs/{job.id}").text.replace(" ", "")


def test_secret_values_are_hidden_everywhere(ask: ApiClient, api_app: App) -> None:
    job = api_app.tasks["total"].enqueue(1, password="hunter2", plain="seen")
    for path in (f"/jobs/{job.id}", "/jobs", f"/jobs/{job.id}/chain"):
        text = ask.request("GET", f"/api{path}").text
        assert "hunter2" not in text
        assert "seen" in text


# Steer


def test_a_job_is_paused_resumed_hastened_cancelled_and_deleted(ask: ApiClient, api_app: App) -> None:
    job = charge(api_app, delay=3600)
    assert ask("POST", f"/jobs/{job.id}/pause")["state"] == "paused"
    assert ask("POST", f"/jobs/{job.id}/resume")["state"] == "pending"
    assert ask("POST", f"/jobs/{job.id}/run-now")["state"] in ("pending", "queued")
    assert ask("POST", f"/jobs/{job.id}/cancel")["state"] == "cancelled"
    problem = ask("POST", f"/jobs/{job.id}/resume", status=409)
    assert problem["type"] == "urn:relet:problem:invalid-transition"
    assert "it is cancelled" in problem["detail"]
    ask("DELETE", f"/jobs/{job.id}", status=204)
    assert ask("GET", f"/jobs/{job.id}", status=404)["instance"] == f"/api/jobs/{job.id}"
    entries = [(entry["who"], entry["what"], entry["subject"]) for entry in ask("GET", "/audit")["entries"]]
    assert entries == [("web:ann", what, job.id) for what in ("delete", "cancel", "run_now", "resume", "pause")]


def test_a_job_is_completed_from_outside_and_its_chain_goes_on(ask: ApiClient, api_app: App) -> None:
    job = charge(api_app)
    going_on = {"result": 5, "continue_with": {"task": "total", "args": [1]}}
    assert ask("POST", f"/jobs/{job.id}/complete", going_on)["state"] == "succeeded"
    chain = ask("GET", f"/chains/{job.id}")
    assert [one["task"] for one in chain["jobs"]] == ["charge", "total"]
    ask("POST", f"/chains/{job.id}/complete", {"result": 7})
    chain = ask("GET", f"/jobs/{job.id}/chain")
    assert (chain["state"], chain["result"]) == ("succeeded", 7)
    ask("DELETE", f"/chains/{job.id}", status=204)
    assert api_app.client.count() == 0


def test_a_result_that_does_not_fit_its_task_is_refused_with_its_path(ask: ApiClient, api_app: App) -> None:
    job = charge(api_app)
    problem = ask("POST", f"/jobs/{job.id}/complete", {"result": "five"}, status=422)
    assert problem["errors"][0]["where"] == "body.result"
    problem = ask("POST", f"/jobs/{job.id}/complete", {"result": [2**70]}, status=422)
    assert problem["errors"] == [
        {"where": "body.result[0]", "what": "an integer of more than 64 bits; pass it as a string"}
    ]


def test_a_chain_that_others_wait_for_is_deleted_only_with_them(ask: ApiClient, api_app: App) -> None:
    job = charge(api_app)
    waits = charge(api_app, depends_on=[job])
    problem = ask("DELETE", f"/jobs/{job.id}?chain=true", status=409)
    assert waits.id in problem["detail"]
    ask("DELETE", f"/jobs/{job.id}?chain=true&dependents=true", status=204)
    assert api_app.client.count() == 0


def test_a_signal_is_sent_once(ask: ApiClient, api_app: App) -> None:
    job = charge(api_app)
    assert ask("POST", f"/jobs/{job.id}/signal", {"name": "paid", "value": {"by": "card"}}) == {"sent": True}
    assert ask("POST", f"/jobs/{job.id}/signal", {"name": "paid", "value": 1}) == {"sent": False}
    ask("POST", f"/jobs/{UNKNOWN_JOB}/signal", {"name": "paid"}, status=404)


def test_a_job_is_rerun_with_other_arguments(ask: ApiClient, api_app: App) -> None:
    job = ask.enqueue(tags=["vip"])
    new = ask("POST", f"/jobs/{job['id']}/rerun", {"arguments": {"cents": 7}}, status=201)
    assert (new["rerun_of"], new["payload"]) == (job["id"], {"account": "acct-7", "cents": 7})
    assert [one["id"] for one in ask("GET", "/jobs?tag=vip&payload=%7B%22cents%22%3A7%7D")["jobs"]] == [new["id"]]
    assert ask("POST", f"/jobs/{job['id']}/rerun", {}, status=201)["payload"] == job["payload"]
    ask("POST", f"/jobs/{job['id']}/rerun", {"arguments": {"cents": "many"}}, status=422)
    refused = ask("POST", f"/jobs/{job['id']}/rerun", {"arguments": {"account": "a\0b"}}, status=422)
    assert refused["errors"][0]["where"] == "body.arguments.account"
    ask("POST", f"/jobs/{UNKNOWN_JOB}/rerun", {}, status=404)


# Bulk


def test_a_preview_counts_and_touches_nothing_and_then_it_is_done(ask: ApiClient, api_app: App) -> None:
    for n in range(5):
        charge(api_app, n, queue="busy")
    charge(api_app, queue="other")
    wanted = {"action": "cancel", "filter": {"queue": "busy"}}
    preview = ask("POST", "/jobs/bulk", {**wanted, "preview": True})
    assert preview == {"matching": 5, "done": 0, "refused": 0, "more": False, "preview": True, "cursor": None}
    assert api_app.client.count(state="cancelled") == 0
    some = ask("POST", "/jobs/bulk", {**wanted, "limit": 2})
    assert (some["done"], some["more"]) == (2, True)
    rest = ask("POST", "/jobs/bulk", wanted)
    assert (rest["done"], rest["refused"], rest["more"]) == (3, 0, False)
    assert [job.queue for job in api_app.client.jobs(state="queued").jobs] == ["other"]


def test_bulk_without_any_filter_is_refused(ask: ApiClient, api_app: App) -> None:
    charge(api_app)
    problem = ask("POST", "/jobs/bulk", {"action": "delete", "filter": {}}, status=422)
    assert problem["errors"][0]["where"] == "body.filter"
    assert api_app.client.count() == 1


# Queues, targets, schedules


def test_a_queue_is_paused_resumed_and_limited(ask: ApiClient, api_app: App) -> None:
    assert ask("POST", "/queues/a%2Fb/pause")["paused"] is True
    assert [(one["queue"], one["paused"]) for one in ask("GET", "/queues")["queues"]] == [("a/b", True)]
    assert ask("POST", "/queues/a%2Fb/resume")["paused"] is False
    limited = ask("PATCH", "/queues/a%2Fb/limits", {"max_running": 3, "rate": {"rate": 9, "per": 60}, "fair": True})
    assert (limited["max_running"], limited["fair"]) == (3, True)
    assert limited["rates"] == [{"group": None, "rate": 9, "per": 60.0}]
    lifted = ask("PATCH", "/queues/a%2Fb/limits", {"max_running": None, "rate": {"rate": None}})
    assert (lifted["max_running"], lifted["rates"], lifted["fair"]) == (None, [], True)
    assert ask("PATCH", "/limits", {"max_running": 100})["queue"] == "*"
    ask("PATCH", "/queues/a/limits", {}, status=422)


def test_a_target_shows_its_line_and_its_holder_is_resumed_where_it_belongs(ask: ApiClient, api_app: App) -> None:
    first, second = charge(api_app, target="acct/7 ä"), charge(api_app, target="acct/7 ä")
    harness_of(api_app).promote_all()
    (claimed,) = harness_of(api_app).claim(1, queues=("billing",))
    harness_of(api_app).fail(claimed)
    (info,) = ask("GET", "/targets")["targets"]
    assert (info["target"], info["holder"]["id"], info["waiting"]) == ("acct/7 ä", first.id, 1)
    path = "/targets/acct%2F7%20%C3%A4"
    seen = ask("GET", path)
    assert (seen["holder"]["state"], [job["id"] for job in seen["line"]]) == ("failed", [second.id])
    ask("POST", f"/targets/acct-8/jobs/{first.id}/resume", status=404)
    assert ask("POST", f"{path}/jobs/{first.id}/resume")["state"] in ("pending", "queued")
    api_app.client.pause(first)
    outside = ask.request("POST", f"{path}/jobs/{first.id}/resume/")
    assert (outside.status_code, outside.json()["id"]) == (200, first.id)


def test_a_schedule_is_put_read_run_paused_and_removed(ask: ApiClient, api_app: App) -> None:
    body = {"task": "charge", "args": ["acct-7", 5], "cron": "0 3 * * *", "timezone": "Europe/Berlin"}
    made = ask("PUT", "/schedules/night%2Fly", body, status=201)
    assert (made["cron"], made["timezone"], made["payload"]["cents"]) == ("0 3 * * *", "Europe/Berlin", 5)
    assert ask("PUT", "/schedules/night%2Fly", {**body, "cron": None, "every": 60})["every"] == 60
    assert ask("POST", "/schedules/night%2Fly/pause")["paused"] is True
    assert ask("POST", "/schedules/night%2Fly/resume")["paused"] is False
    job = ask("POST", "/schedules/night%2Fly/run-now", status=201)
    (tick,) = ask("GET", "/schedules/night%2Fly/ticks")["ticks"]
    assert (tick["job"], tick["note"]) == (job["id"], "run now")
    assert [one["name"] for one in ask("GET", "/schedules")["schedules"]] == ["night/ly"]
    ask("DELETE", "/schedules/night%2Fly", status=204)
    for method, path in (("GET", ""), ("DELETE", ""), ("GET", "/ticks"), ("POST", "/pause"), ("POST", "/run-now")):
        ask(method, f"/schedules/night%2Fly{path}", status=404)


@pytest.mark.parametrize(
    ("changed", "where"),
    [
        ({"cron": "0 3 * *"}, "body.cron"),
        ({"cron": None}, "body.cron"),
        ({"every": 5}, "body.cron"),
        ({"timezone": "Europe/Bärlin"}, "body.timezone"),
        ({"missed": "never"}, "body.missed"),
        ({"args": ["acct-7", "x"]}, "body.payload.cents"),
        ({"delay": 5}, "body.delay"),
    ],
)
def test_an_invalid_schedule_is_refused_with_its_field(ask: ApiClient, changed: dict[str, Any], where: str) -> None:
    body = {"task": "charge", "args": ["acct-7", 5], "cron": "0 3 * * *", **changed}
    assert ask("PUT", "/schedules/nightly", body, status=422)["errors"][0]["where"] == where


# Other views


def test_workers_statistics_and_totals_are_listed(ask: ApiClient, api_app: App) -> None:
    job = charge(api_app)
    (claimed,) = harness_of(api_app).claim(1, queues=("billing",))
    harness_of(api_app).succeed(claimed, "500")
    assert ask("GET", f"/jobs/{job.id}")["result"] == 500
    assert ask("GET", "/workers") == {"workers": []}
    for path in ("/stats", "/stats?since=2026-01-01T00:00:00Z&step=3600&queue=billing", "/totals"):
        seen = ask("GET", path)
        assert seen["bounds"] == list(BOUNDS)
        assert all(len(point["waits"]["counts"]) == len(BOUNDS) + 1 for point in seen["points"])


def test_tasks_are_listed_with_the_schemas_of_their_payloads(ask: ApiClient) -> None:
    charge, total = ask("GET", "/tasks")["tasks"]
    assert (charge["name"], charge["summary"], charge["queue"]) == ("charge", "Take money from an account.", "billing")
    arguments = charge["payload"]["$defs"]["Arguments"]
    assert arguments["properties"]["cents"] == {"type": "integer"}
    assert arguments["required"] == ["account", "cents"]
    assert charge["result"] == {"type": "integer"}
    assert total["payload"]["$defs"]["Arguments"]["properties"]["numbers"]["type"] == "array"


def test_the_document_describes_every_endpoint_and_every_answer(ask: ApiClient) -> None:
    document = ask("GET", "/openapi.json")
    assert document["openapi"] == "3.1.0"
    assert document["servers"] == [{"url": "/api"}]
    operations = [one for path in document["paths"].values() for one in path.values()]
    assert len({one["operationId"] for one in operations}) == len(operations) > 40
    for one in operations:
        assert {"401", "403", "500", "503"} < one["responses"].keys()
        assert one["summary"]
    assert document["components"]["schemas"]["JobIn"]["properties"]["task"]["enum"] == ["charge", "total"]


def test_who_may_only_read_sees_everything_and_changes_nothing(ask: ApiClient, api_app: App) -> None:
    job = charge(api_app)
    reading: dict[str, Any] = {"headers": {"authorization": f"Bearer {READ}"}}
    assert ask("GET", f"/jobs/{job.id}", **reading)["id"] == job.id
    ask("POST", f"/jobs/{job.id}/cancel", status=403, **reading)
    ask("DELETE", f"/jobs/{job.id}", status=403, **reading)
    stored = api_app.client.get(job)
    assert stored is not None
    assert stored.state == "queued"
