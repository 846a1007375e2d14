"""Checks that a gateway keeps the protocol. Each talks to one by HTTP, and acts as an operator by a client.

They check any gateway whose store a client of Relet can reach:
`python -m tests.gateway.conformance http://127.0.0.1:8480 TOKEN postgresql://...`
"""

from __future__ import annotations

import sys
import threading
import time
import uuid
from collections.abc import Callable
from contextlib import closing
from typing import Any

from msgspec import Struct

from relet import App, Job
from relet._core.ids import parse_id
from tests.gateway.protocol import Refused, Speaker, ids, lease, succeeded
from tests.waiting import Pause

WITHIN = 20.0  # seconds
Check = Callable[["Site"], object]


class Site(Struct):
    """A gateway, and the store behind it. `scoped`: a token for queue "billing" alone, if there is one."""

    url: str
    token: str
    app: App
    scoped: str = ""

    def speaker(self, name: str = "one", token: str | None = None, lease: float = 30.0) -> Speaker:
        return Speaker(self.url, token or self.token, f"{name}:1:{uuid.uuid4().hex[:8]}", lease)

    def enqueue(self, number: int = 1, **options: Any) -> list[Job[Any]]:
        task = self.app.tasks["work"]
        return self.app.client.enqueue_many([task.using(**options).draft(n) for n in range(number)])

    def job(self, job: Job[Any] | dict[str, Any]) -> Job[Any]:
        found = self.app.client.get(job["id"] if isinstance(job, dict) else job)
        assert found is not None
        return found


def until(condition: Callable[[], object], what: str) -> None:
    give_up, pause = time.monotonic() + WITHIN, Pause()
    while not condition():
        assert time.monotonic() < give_up, what
        pause()


def refusal(worker: Speaker, verb: str, body: Any) -> tuple[int, str] | None:
    """The status and the kind of the problem; None if the request was accepted."""
    try:
        worker.post(verb, {"worker": worker.worker, **body} if isinstance(body, dict) else body)
    except Refused as refused:
        return refused.status, refused.kind
    return None


def hello_tells_the_limits(site: Site) -> None:
    found = site.speaker().ask("hello")
    assert found["protocol"] == 1
    assert found["max_jobs"] >= 100
    assert found["max_wait"] >= 1
    assert found["queues"] is None


def a_worker_that_says_hello_is_listed_until_its_goodbye(site: Site) -> None:
    worker = site.speaker()
    about = {"host": "node7", "pid": 42, "slots": 3, "tasks": ["work"], "queues": ["default"], "running": 2}
    name = worker.ask("hello", **about)["worker"]
    (found,) = [one for one in site.app.client.workers() if one.name == name]
    assert (found.host, found.pid, found.slots, found.running, found.queues) == ("node7", 42, 3, 2, ("default",))
    worker.ask("goodbye")
    assert name not in [one.name for one in site.app.client.workers()]


def counts_are_added_once(site: Site) -> None:
    worker, report = site.speaker(), str(uuid.uuid4())
    for _ in range(2):
        counts = [
            {"queue": "counted", "name": "succeeded", "number": 3},
            {"queue": "counted", "name": "x", "number": 1},
        ]
        worker.ask("hello", slots=1, tasks=["work"], report=report, counts=counts)
    (total,) = [one for one in site.app.client.totals() if one.queue == "counted"]
    assert total.counts == {"succeeded": 3}


def a_claimed_job_is_described(site: Site) -> None:
    (job,) = site.enqueue(priority=5, group="acct-7", timeout=9.0, max_attempts=7)
    (found,) = site.speaker().claim()
    assert (found["id"], found["task"], found["queue"], found["payload"]) == (job.id, "work", "default", {"value": 0})
    assert (found["attempt"], found["version"], found["max_attempts"]) == (1, 1, 7)
    assert (found["priority"], found["group"], found["timeout"], found["lease"]) == (5, "acct-7", 9.0, 30.0)
    assert site.job(job).state == "running"


def a_result_is_stored_and_a_repeated_settle_gets_the_same_answer(site: Site) -> None:
    site.enqueue()
    worker = site.speaker()
    (job,) = worker.claim()
    for _ in range(2):
        (answer,) = worker.settle(succeeded(job, {"paid": [1, 2.5, "\u20ac"]}))
        assert (answer["id"], answer["state"]) == (job["id"], "succeeded")
    assert site.job(job).result == {"paid": [1, 2.5, "\u20ac"]}


def every_outcome_has_its_state(site: Site) -> None:
    site.enqueue(5, max_attempts=2)
    worker = site.speaker()
    raised, fatal, snoozed, released, paused = worker.claim()
    outcomes = [
        lease(raised, outcome="raised", error="ValueError: no", error_type="builtins.ValueError", delay=60),
        lease(fatal, outcome="raised", error="never", fatal=True),
        lease(snoozed, outcome="snoozed", delay=60),
        lease(released, outcome="released", reason="not now"),
        lease(paused, outcome="released", pause=True),
    ]
    for _ in range(2):
        answers = worker.settle(*outcomes)
        assert [one["state"] for one in answers] == ["pending", "failed", "pending", "queued", "paused"]
    assert answers[0]["id"] == raised["id"]
    assert [site.job(job).attempt for job in (raised, snoozed, released)] == [1, 0, 0]
    assert site.job(fatal).error == "never"


def a_job_can_continue_with_another(site: Site) -> None:
    site.enqueue()
    worker = site.speaker()
    (job,) = worker.claim()
    following = {"task": "work", "payload": {"value": 8}, "priority": 3, "policy": {"max_attempts": 9}}
    for _ in range(2):
        (answer,) = worker.settle(lease(job, outcome="succeeded", continue_with=following))
        assert answer["state"] == "succeeded"
    (next_one,) = worker.claim()
    assert (next_one["payload"], next_one["chain"], next_one["max_attempts"]) == ({"value": 8}, job["id"], 9)
    assert worker.claim() == []


def an_outcome_that_is_refused_holds_up_no_other(site: Site) -> None:
    site.enqueue(3)
    worker = site.speaker()
    one, two, three = worker.claim()
    bad = lease(two, outcome="succeeded", continue_with={"task": "not a name!"})
    answers = worker.settle(succeeded(one), bad, succeeded(three, "a\0b"))
    assert [answer.get("state") for answer in answers] == ["succeeded", None, None]
    assert "task" in answers[1]["refused"]
    assert "NUL" in answers[2]["refused"]
    assert site.job(two).state == "running"


def a_claim_that_is_repeated_gets_its_jobs(site: Site) -> None:
    site.enqueue(3)
    worker, token = site.speaker(), str(uuid.uuid4())
    first = worker.claim(token=token, want=2)
    again = worker.claim(token=token, want=2, again=True)
    assert [lease(job) for job in first] == [lease(job) for job in again]
    assert len(first) == 2
    assert {job["token"][:24] for job in first} == {token[:24]}


def a_claim_that_runs_twice_leases_with_two_tokens(site: Site) -> None:
    site.enqueue(1)
    worker, token = site.speaker(), str(uuid.uuid4())
    (first,) = worker.claim(token=token)
    worker.settle(lease(first, outcome="released"))
    (second,) = worker.claim(token=token)
    assert first["id"] == second["id"]
    assert ids(worker.renew(first)["lost"]) == [first["id"]]


def a_claim_whose_answer_was_lost_is_found_by_the_next_renewal(site: Site) -> None:
    site.enqueue(2)
    worker = site.speaker()
    kept, lost = (worker.claim(want=1)[0] for _ in range(2))
    found = worker.renew(kept)
    assert ids(found["renewed"]) == [kept["id"]]
    assert found["unknown"] == [lease(lost)]
    worker.settle(lease(lost, outcome="released"))
    assert site.job(lost).state == "queued"
    assert site.job(lost).attempt == 0


def no_worker_learns_the_leases_of_another(site: Site) -> None:
    site.enqueue()
    (job,) = site.speaker().claim()
    assert site.speaker("two").renew()["unknown"] == []
    assert site.job(job).state == "running"


def a_renewal_extends_the_lease(site: Site) -> None:
    site.enqueue()
    worker = site.speaker()
    (job,) = worker.claim()
    before = site.job(job).expires_at
    time.sleep(0.01)
    assert ids(worker.renew(job)["renewed"]) == [job["id"]]
    after = site.job(job).expires_at
    assert before is not None
    assert after is not None
    assert after > before


def a_former_owner_changes_nothing(site: Site) -> None:
    (job,) = site.enqueue(max_attempts=9)
    late, new = site.speaker("late", lease=0.2), site.speaker("new")
    (first,) = late.claim()
    until(lambda: site.job(job).state == "queued", "the lease was not reaped")
    (second,) = new.claim(wait=10)
    (answer,) = late.settle(succeeded(first, "late"))
    assert answer.get("state") is None
    assert "refused" not in answer
    assert late.renew(first)["lost"] == [lease(first, reason="lease_lost")]
    assert late.ask("progress", reports=[lease(first, done=1)])["stored"] == []
    for verb, more in (("step", {"kind": "step", "name": "a", "result": 1}), ("details", {})):
        assert refusal(late, verb, {**lease(first), **more}) == (409, "lease-lost"), verb
    assert new.settle(succeeded(second, "new"))[0]["state"] == "succeeded"
    assert site.job(job).result == "new"


def losses_have_their_reasons(site: Site) -> None:
    jobs = site.enqueue(3)
    worker = site.speaker()
    claimed = {one["id"]: one for one in worker.claim()}
    completed, deleted, settled = (claimed[job.id] for job in jobs)
    site.app.client.complete(completed["id"], 5)
    site.app.client.delete(deleted["id"])
    worker.settle(succeeded(settled))
    found = {one["id"]: one["reason"] for one in worker.renew(*claimed.values())["lost"]}
    assert found == {completed["id"]: "completed", deleted["id"]: "deleted", settled["id"]: "settled"}


def requests_reach_the_worker(site: Site) -> None:
    site.enqueue()
    worker = site.speaker()
    (job,) = worker.claim()
    answers: list[Any] = []
    waiting = threading.Thread(target=lambda: answers.append(worker.ask("requests", wait=15)))
    waiting.start()
    time.sleep(0.2)
    site.app.client.cancel(job["id"])
    waiting.join(WITHIN)
    assert answers == [{"requests": [lease(job, request="cancel")]}]
    assert worker.renew(job)["renewed"] == [lease(job, request="cancel")]
    assert worker.settle(lease(job, outcome="released"))[0]["state"] == "cancelled"


def a_claim_waits_for_a_job(site: Site) -> None:
    worker = site.speaker()
    answers: list[Any] = []
    body = {"token": str(uuid.uuid4()), "tasks": ["work"], "wait": 15}
    waiting = threading.Thread(target=lambda: answers.append(worker.ask("claim", **body)))
    waiting.start()
    time.sleep(0.3)
    (job,) = site.enqueue()
    waiting.join(WITHIN)
    (answer,) = answers
    assert ids(answer["jobs"]) == [job.id]
    assert 0.1 < answer["waited"] < WITHIN


def a_claim_that_finds_nothing_is_answered_in_time(site: Site) -> None:
    began = time.monotonic()
    assert site.speaker().claim("nothing", wait=0.5) == []
    assert 0.4 < time.monotonic() - began < WITHIN


def nothing_is_claimed_for_a_client_that_has_gone(site: Site) -> None:
    gone = site.speaker("gone")
    body = {"worker": gone.worker, "token": str(uuid.uuid4()), "tasks": ["work"], "wait": 15}
    with closing(gone.send("claim", body)):
        time.sleep(0.3)
    time.sleep(0.3)
    (job,) = site.enqueue()
    (found,) = site.speaker("other").claim(wait=10)
    assert found["id"] == job.id
    assert found["version"] == 1


def an_interrupt_ends_the_wait(site: Site) -> None:
    worker = site.speaker()
    began, answers = time.monotonic(), list[Any]()
    body = {"token": str(uuid.uuid4()), "tasks": ["work"], "wait": 30}
    waiting = threading.Thread(target=lambda: answers.append(worker.ask("claim", **body)))
    waiting.start()
    time.sleep(0.3)
    worker.ask("interrupt")
    waiting.join(WITHIN)
    assert answers[0]["jobs"] == []
    assert time.monotonic() - began < WITHIN


def paused_queues_are_named(site: Site) -> None:
    site.app.client.pause_queue("mail")
    worker = site.speaker()
    until(lambda: worker.renew()["paused"] == ["mail"], "the paused queue was not named")
    site.app.client.resume_queue("mail")


def progress_is_stored(site: Site) -> None:
    site.enqueue()
    worker = site.speaker()
    (job,) = worker.claim()
    stored = worker.ask("progress", reports=[lease(job, done=3, total=10, note="halfway")])
    assert stored["stored"] == [lease(job)]
    progress = site.job(job).progress
    assert progress is not None
    assert (progress.done, progress.total, progress.note) == (3, 10, "halfway")


def steps_are_stored_once(site: Site) -> None:
    (job,) = site.enqueue()
    worker = site.speaker()
    (claimed,) = worker.claim()
    kept = [worker.ask("step", **lease(claimed), kind="step", name="fetch", result=n, took=0.1) for n in (5, 6)]
    assert [one["result"] for one in kept] == [5, 5]
    assert 50 < worker.ask("step", **lease(claimed), kind="sleep", name="nap", seconds=60)["left"] <= 60
    site.app.client.signal(job, "go", {"by": "ann"})
    found = worker.ask("details", **lease(claimed), signal="go")
    assert {(one["kind"], one["name"]): one.get("result") for one in found["steps"]} == {
        ("step", "fetch"): 5,
        ("sleep", "nap"): None,
    }
    assert found["signal"] == {"by": "ann"}
    assert "signal" not in worker.ask("details", **lease(claimed), signal="other")


def dependencies_are_told(site: Site) -> None:
    (first,) = site.enqueue()
    worker = site.speaker()
    (claimed,) = worker.claim()
    (second,) = site.enqueue(depends_on=[first])
    worker.settle(succeeded(claimed, 7))
    (job,) = worker.claim(wait=10)
    assert (job["id"], job["dependency_count"]) == (second.id, 1)
    found = worker.ask("details", **lease(job))["dependencies"]
    assert found == [{"chain": first.id, "state": "succeeded", "result": 7, "task": "work"}]


def a_job_that_lost_two_workers_runs_alone(site: Site) -> None:
    (job,) = site.enqueue(max_attempts=9)
    for losses in (1, 2):
        (claimed,) = site.speaker("dying", lease=0.2).claim(wait=10)
        assert claimed["id"] == job.id
        until(lambda losses=losses: site.job(job).losses == losses, "the lease was not reaped")  # type: ignore[misc]
    worker = site.speaker()
    worker.ask("hello", slots=1, tasks=["work"])
    until(lambda: site.job(job).state == "queued", "it was not queued again")
    answer = worker.ask("claim", token=str(uuid.uuid4()), tasks=["work"], want=1)
    assert answer["jobs"] == []
    assert answer["quarantined"]
    assert worker.ask("quarantine", enter=True)["granted"]
    (found,) = worker.claim(want=1, alone=True)
    assert (found["id"], found["losses"]) == (job.id, 2)
    worker.settle(succeeded(found))


def unknown_fields_are_ignored(site: Site) -> None:
    (job,) = site.enqueue()
    (found,) = site.speaker().claim(colour="blue")
    assert found["id"] == job.id


def requests_that_are_wrong_are_refused(site: Site) -> None:
    worker = site.speaker()
    token, id = str(uuid.uuid4()), parse_id("0192f3a0-7c1e-7b3a-9d1f-2f6f5a1c0de1")
    for verb, body, status in [
        ("claim", b"{", 400),
        ("claim", {"worker": "w"}, 422),
        ("claim", {"worker": "w", "token": "1", "tasks": ["work"]}, 422),
        ("claim", {"worker": "w", "token": token, "tasks": ["work"], "want": 10**6}, 422),
        ("claim", {"worker": "a\nb", "token": token, "tasks": ["work"]}, 422),
        ("settle", {"worker": "w", "outcomes": [{"id": id, "token": token, "outcome": "won"}]}, 422),
        ("settle", {"worker": "w", "outcomes": [{"id": "x", "token": token, "outcome": "succeeded"}]}, 422),
        ("step", {"worker": "w", "id": id, "token": token, "kind": "signal", "name": "a"}, 422),
        ("nothing", {}, 404),
    ]:
        assert (answer := refusal(worker, verb, body)) is not None
        assert answer[0] == status, (verb, body)


def a_wrong_token_is_refused(site: Site) -> None:
    for token in ("wrong-wrong-wrong-wrong", "\u00e9" * 20):
        assert refusal(site.speaker(token=token), "hello", {}) == (401, "unauthenticated")


def a_token_is_for_its_queues(site: Site) -> None:
    if not site.scoped:
        return
    mail, bill = (site.enqueue(queue=queue)[0] for queue in ("mail", "billing"))
    worker, other = site.speaker("scoped", site.scoped), site.speaker("other")
    assert worker.ask("hello")["queues"] == ["billing"]
    (own,) = worker.claim()  # all queues: those of the token
    assert own["id"] == bill.id
    (foreign,) = other.claim(queues=["mail"])
    assert foreign["id"] == mail.id
    follow = lease(own, outcome="succeeded", continue_with={"task": "work", "queue": "mail"})
    refused_requests: list[tuple[str, dict[str, Any]]] = [
        ("hello", {"queues": ["mail"]}),
        ("claim", {"token": str(uuid.uuid4()), "tasks": ["work"], "queues": ["mail", "billing"]}),
        ("renew", {"leases": [lease(own), lease(foreign)]}),
        ("settle", {"outcomes": [succeeded(own), succeeded(foreign)]}),
        ("settle", {"outcomes": [follow]}),
        ("progress", {"reports": [lease(foreign, done=1)]}),
        ("details", lease(foreign)),
        ("step", {**lease(foreign), "kind": "step", "name": "a"}),
    ]
    for verb, body in refused_requests:
        assert refusal(worker, verb, body) == (403, "forbidden"), verb
    assert [site.job(one).state for one in (mail, bill)] == ["running", "running"]
    # The name of a worker with another token is another name.
    assert Speaker(site.url, site.scoped, other.worker).ask("renew")["unknown"] == []
    assert worker.settle(succeeded(own))[0]["state"] == "succeeded"


CHECKS: tuple[Check, ...] = (
    hello_tells_the_limits, a_worker_that_says_hello_is_listed_until_its_goodbye, counts_are_added_once,
    a_claimed_job_is_described, a_result_is_stored_and_a_repeated_settle_gets_the_same_answer,
    every_outcome_has_its_state, a_job_can_continue_with_another, an_outcome_that_is_refused_holds_up_no_other,
    a_claim_that_is_repeated_gets_its_jobs, a_claim_that_runs_twice_leases_with_two_tokens,
    a_claim_whose_answer_was_lost_is_found_by_the_next_renewal,
    no_worker_learns_the_leases_of_another, a_renewal_extends_the_lease, a_former_owner_changes_nothing,
    losses_have_their_reasons, requests_reach_the_worker, a_claim_waits_for_a_job,
    a_claim_that_finds_nothing_is_answered_in_time, nothing_is_claimed_for_a_client_that_has_gone,
    an_interrupt_ends_the_wait, paused_queues_are_named, progress_is_stored, steps_are_stored_once,
    dependencies_are_told, a_job_that_lost_two_workers_runs_alone, unknown_fields_are_ignored,
    requests_that_are_wrong_are_refused, a_wrong_token_is_refused, a_token_is_for_its_queues,
)  # fmt: skip


def define_tasks(app: App) -> None:
    @app.task(name="work")
    def work(value: Any = None) -> Any:
        return value


def main(url: str, token: str, store: str, schema: str = "relet") -> None:
    """Check a gateway. Its store must have no jobs and no other workers."""
    app = App(store, schema=schema)
    define_tasks(app)
    for check in CHECKS:
        for job in app.client.jobs(limit=1000).jobs:
            app.client.delete(job)
        check(Site(url, token, app))
        print(f"passed: {check.__name__.replace('_', ' ')}")


if __name__ == "__main__":
    main(*sys.argv[1:])
