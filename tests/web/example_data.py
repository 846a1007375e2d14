"""A web shop's queue, an hour and a half into its day: the data for screenshots and tests of the dashboard.

Everything is done by the flows that workers use, at moments of the past: each job lives its life to the end, one after
the other, although their times overlap. Nothing here is random from run to run.
"""

from __future__ import annotations

import json
import random
import time
import uuid
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

from relet import App, Attempt, Job
from relet._core.ids import make_id
from relet._core.job import Claimed, Draft, Outcome, Progress, Raised, Released, Snoozed, Succeeded
from relet._core.schedule import define
from relet._core.worker import WorkerFacts
from relet._store.flows import claim as claim_flows
from relet._store.flows import (
    completion,
    control,
    enqueue,
    lease,
    maintenance,
    promote,
    schedules,
    stats,
    worker_reports,
)
from relet._store.flows import settle as settle_flows
from relet._store.flows.claim_scope import Claim, Scope
from relet._store.flows.stats import Count
from relet._tasks.task import new_id
from tests import clocks

LEASE = 30.0
LOST = "media-2:318:e119"
QUEUES = ("billing", "mail", "media", "reports")
WORKERS = {
    "shop-1:4711:a3f0": (("billing", "mail"), 8),
    "shop-2:4802:77be": (None, 8),
    "media-1:911:0d52": (("media", "reports"), 4),
    "media-2:318:e119": (("media",), 4),
}

TRACEBACK = """shop.provider.ProviderError: 502 from payments.example: upstream timed out after 10 s (request 8f31c2)

Traceback (most recent call last):
  File "/srv/shop/billing.py", line 88, in charge
    answer = provider.charge(account, cents, timeout=10)
  File "/srv/shop/provider.py", line 41, in charge
    raise ProviderError(response.status, response.text)
shop.provider.ProviderError: 502 from payments.example: upstream timed out after 10 s (request 8f31c2)
"""


def shop(url: str, schema: str = "relet") -> App:
    """The shop's app. Its handlers are never run here."""
    app = App(url, schema=schema)

    @app.task(queue="billing", max_attempts=5)
    def charge(attempt: Attempt, account: str, cents: int) -> str:
        return account

    @app.task(queue="billing")
    def refund(account: str, order: str) -> None: ...

    @app.task(queue="mail")
    def send_receipt(order: str, to: str) -> None: ...

    @app.task(queue="mail", priority=-10)
    def send_newsletter(issue: int, to: str) -> None: ...

    @app.task(queue="media", lease=60)
    def resize_photo(photo: str, width: int = 1600) -> str:
        return photo

    @app.task(queue="media")
    def transcode_video(video: str) -> str:
        return video

    @app.task(queue="reports")
    def collect_sales(day: str, region: str) -> int:
        return 0

    @app.task(queue="reports")
    def build_report(day: str) -> str:
        return day

    @app.task(queue="reports")
    def publish_report(report: str) -> None: ...

    @app.task(queue="orders")
    def fulfil_order(attempt: Attempt, order: str) -> str:
        return order

    @app.task(queue="reports")
    def sync_stock(warehouse: str = "north") -> None: ...

    return app


@dataclass
class ExampleData:
    """The verbs of clients and workers at moments of the past; random values are the same in each run."""

    app: App
    now: float
    dice: random.Random

    def run(self, flow: Callable[..., Any], *args: Any, at: float | None = None, **kwargs: Any) -> Any:
        with clocks.at(self.app._store(), at):
            return self.app._store().run(flow, *args, **kwargs)

    def draft(self, task: str, at: float, using: dict[str, Any] | None = None, **arguments: Any) -> Draft[Any]:
        """A draft whose id is of that moment."""
        id = make_id(at, self.dice.randbytes(10))
        return self.app.tasks[task].using(id=id, **(using or {})).draft(**arguments)

    def enqueue(self, draft: Draft[Any], at: float) -> Job[Any]:
        jobs: list[Job[Any]] = self.run(enqueue.enqueue, [draft], at=at)
        return jobs[0]

    def put(self, task: str, ago: float, using: dict[str, Any] | None = None, **arguments: Any) -> Job[Any]:
        at = self.now - ago
        return self.enqueue(self.draft(task, at, using, **arguments), at)

    def claim(self, queue: str, at: float, worker: str, span: float = LEASE) -> Claimed:
        how: dict[str, Any] = {"want": 1, "lease": span, "random": self.dice.random, "at": at, "rescue": True}
        token = str(uuid.UUID(bytes=self.dice.randbytes(16)))
        queues = [Scope(queue, 1)]
        claim: Claim = self.run(claim_flows.claim, worker, token, queues, sorted(self.app.tasks), **how)
        return claim.jobs[0]

    def renew(self, worker: str, claimed: Claimed, at: float, span: float = LEASE) -> None:
        self.run(lease.renew, worker, [claimed.lease], lease=span, at=at)

    def settle(self, claimed: Claimed, outcome: Outcome, at: float, chance: float = 0.5) -> None:
        self.run(settle_flows.settle, [(claimed.lease, outcome)], lambda: chance, at=at)

    def reap(self, at: float) -> None:
        self.run(maintenance.record_pulse, grace=0.0, every=-1e12, at=at)
        self.run(lease.reap, self.dice.random, at=at)

    def promote(self, at: float) -> None:
        while self.run(promote.promote, at=at).more:
            pass

    def worker(self, queue: str) -> str:
        serving = [name for name, (queues, _) in WORKERS.items() if queues is None or queue in queues]
        return self.dice.choice(serving[:2])


def build(url: str, now: float | None = None) -> App:
    """Fill an empty store."""
    app = shop(url)
    app.client.migrate()
    data = ExampleData(app, time.time() if now is None else now, random.Random(7))
    _schedules(data)
    _plain_jobs(data)
    _reports(data)
    _retried(data)
    _lost(data)
    _workflows(data)
    _failed(data)
    _target(data)
    _stopped(data)
    _waiting(data)
    _running(data)
    _limits(data)
    _statistics(data)
    _workers(data)
    _people(data)
    return app


def here_again(app: App) -> None:
    """The workers of the example register and renew, as real ones do every few seconds; one was killed."""
    data = ExampleData(app, time.time(), random.Random(7))
    _workers(data)
    tick = sorted(app.tasks), lambda: make_id(data.now, data.dice.randbytes(10))
    data.run(schedules.tick, *tick, at=data.now)
    for number, worker in enumerate(WORKERS):
        if worker != LOST:
            leases = data.run(lease.renew, worker, [], lease=LEASE).unknown
            data.run(lease.renew, worker, leases, lease=LEASE, at=data.now - 2 - 2 * number)


def _plain_jobs(data: ExampleData) -> None:
    """Most jobs simply succeed."""
    for number in range(90):
        ago = 5400 * (1 - number / 90) + 30
        examples: list[tuple[str, dict[str, Any]]] = [
            ("send_receipt", {"order": f"A-{20417 + number}", "to": f"customer{number}@example.com"}),
            ("charge", {"account": f"acct-{number % 40}", "cents": data.dice.randrange(499, 24999)}),
            ("resize_photo", {"photo": f"products/{9000 + number}.jpg"}),
        ]
        task, arguments = data.dice.choice(examples)
        job = data.put(task, ago, **arguments)
        at = data.now - ago + data.dice.uniform(0.02, 2)
        claimed = data.claim(job.queue, at, data.worker(job.queue))
        data.settle(claimed, Succeeded('{"ok": true}'), at + data.dice.uniform(0.1, 6))


def _retried(data: ExampleData) -> None:
    """Two errors, then success; and one that is between two attempts."""
    for ago, account in ((1900.0, "acct-3"), (21.0, "acct-9")):
        job = data.put("charge", ago, {"target": f"account/{account}"}, account=account, cents=12900)
        at = data.now - ago + 0.4
        data.promote(at)
        for number, took in enumerate((10.2, 6.1)):
            claimed = data.claim(job.queue, at, data.worker("billing"))
            data.settle(claimed, Raised(TRACEBACK, delay=8.0 * 2**number), at + took)
            at += took + 8.0 * 2**number + 0.2
            if at > data.now:
                break
            data.promote(at)
        else:
            data.settle(data.claim(job.queue, at, data.worker("billing")), Succeeded('"paid"'), at + 2.4)


def _lost(data: ExampleData) -> None:
    """A worker is killed; another takes over after the lease; the job has snoozed before."""
    job = data.put("transcode_video", 960, video="lookbook-autumn.mp4")
    at = data.now - 955
    claimed = data.claim("media", at, "media-1:911:0d52")
    data.settle(claimed, Snoozed(20.0), at + 3)
    at += 24
    data.promote(at)
    claimed = data.claim("media", at, "media-2:318:e119")
    for beat in (10, 20, 30, 40):
        data.renew("media-2:318:e119", claimed, at + beat)
    data.reap(at + 71)
    data.promote(at + 73)
    claimed = data.claim("media", at + 73, "media-1:911:0d52")
    data.settle(claimed, Succeeded(f'{{"video": "{job.id[-4:]}.webm", "seconds": 212}}'), at + 160)


def _workflows(data: ExampleData) -> None:
    """Orders with durable steps: one was approved and sent, one waits for its approval."""
    for ago, order, approved in ((2300.0, "A-20390", True), (1400.0, "A-20431", False)):
        job = data.put("fulfil_order", ago, order=order)
        at, worker = data.now - ago + 0.3, "shop-2:4802:77be"
        claimed = data.claim("orders", at, worker)
        stock = json.dumps({"warehouse": "north", "lines": [{"sku": f"S-{n}", "count": n + 1} for n in range(3)]})
        _keep(data, claimed, "step", "reserve_stock", at + 1.4, stock, input=json.dumps({"order": order}), took=1.2)
        _keep(data, claimed, "step", "authorize_card", at + 4.1, '{"authorization": "auth_9f2c", "cents": 12900}',
              input='{"customer": "ada@example.com", "cents": 12900}', took=2.6)  # fmt: skip
        _keep(data, claimed, "sleep", "time to change the order", at + 4.1, seconds=300.0)
        data.settle(claimed, Snoozed(300.0), at + 4.2)
        at += 304.5
        data.promote(at)
        claimed = data.claim("orders", at, worker)
        _keep(data, claimed, "step", "check_fraud", at + 2.2, '{"score": 0.83, "needs_approval": true}',
              input='{"authorization": "[hidden]"}', took=2.0)  # fmt: skip
        _keep(data, claimed, "wait", "approval", at + 2.3, seconds=86400.0)
        data.settle(claimed, Snoozed(86400.0, "approval"), at + 2.4)
        if approved:
            at += 841
            data.run(control.signal, job.id, "approval", '{"by": "ada@example.com"}', at=at)
            data.promote(at + 0.5)
            claimed = data.claim("orders", at + 0.6, worker)
            _keep(
                data,
                claimed,
                "step",
                "capture_payment",
                at + 2.9,
                '{"payment": "pay_71aa"}',
                input='{"order": 20390, "cents": 4900}',
                took=2.1,
            )
            _keep(data, claimed, "step", "print_label", at + 3.7, '"https://labels.example/20390.pdf"')
            data.settle(claimed, Succeeded('"sent"'), at + 4)


def _keep(
    data: ExampleData, claimed: Claimed, kind: str, name: str, at: float, text: str | None = None,
    seconds: float | None = None, input: str | None = None, took: float | None = None,
) -> None:  # fmt: skip
    called = completion.Called(text, input, took)
    assert data.run(completion.keep, claimed.lease, kind, name, called, seconds, at=at) is not None


def _failed(data: ExampleData) -> None:
    errors: list[tuple[str, dict[str, Any], str, int]] = [
        ("charge", {"cents": 4900}, TRACEBACK, 9),
        ("send_receipt", {"order": "A-20111"}, "smtplib.SMTPRecipientsRefused: 550 mailbox {n} unavailable", 6),
        ("resize_photo", {}, "PIL.UnidentifiedImageError: cannot identify image file 'products/{n}.jpg'", 4),
        ("sync_stock", {}, "shop.stock.Mismatch: warehouse north counts {n} items less than we do", 1),
    ]
    for task, arguments, error, number in errors:
        for index in range(number):
            named: dict[str, dict[str, Any]] = {
                "charge": {"account": f"acct-{index}"}, "send_receipt": {"to": f"old{index}@example.com"},
                "resize_photo": {"photo": f"products/{index}.jpg"}, "sync_stock": {},
            }  # fmt: skip
            ago = 4000.0 - 350 * index
            job = data.put(task, ago, **arguments, **named[task])
            at = data.now - ago + 1
            for attempt in range(3):
                claimed = data.claim(job.queue, at, data.worker(job.queue))
                raised = Raised(error.replace("{n}", str(7301 + index)), delay=4.0, fatal=attempt == 2)
                data.settle(claimed, raised, at + 2)
                at += 7
                data.promote(at)


def _target(data: ExampleData) -> None:
    """An account whose failed charge blocks the jobs behind it."""
    charges: list[tuple[str, dict[str, Any]]] = [
        ("charge", {"account": "acct-17", "cents": 8900}), ("charge", {"account": "acct-17", "cents": 1200}),
         ("refund", {"account": "acct-17", "order": "A-20202"}), ("charge", {"account": "acct-17", "cents": 4300}),
    ]  # fmt: skip
    for index, (task, arguments) in enumerate(charges):
        data.put(task, 1500.0 - 200 * index, {"target": "account/acct-17"}, **arguments)
        data.promote(data.now - 1499 + 200 * index)
    claimed = data.claim("billing", data.now - 1490, data.worker("billing"))
    data.settle(
        claimed, Raised("shop.provider.CardExpired: the card of acct-17 expired in 10/26", fatal=True), data.now - 1488
    )


def _reports(data: ExampleData) -> None:
    """A report waits for the sales of three regions, is built, and published: one chain after three."""
    for day, ago, done in (("2026-11-14", 4300.0, True), ("2026-11-15", 700.0, False)):
        regions = [data.put("collect_sales", ago, day=day, region=region) for region in ("north", "south", "west")]
        draft = data.draft("build_report", data.now - ago + 1, {"depends_on": [job.id for job in regions]}, day=day)
        data.enqueue(draft, data.now - ago + 1)
        at = data.now - ago + 3
        for _ in regions if done else regions[:2]:
            claimed = data.claim("reports", at, "media-1:911:0d52")
            data.settle(claimed, Succeeded(str(data.dice.randrange(1000, 9000))), at + 14)
            at += 6
        data.promote(at + 20)
        if done:
            claimed = data.claim("reports", at + 21, "media-1:911:0d52")
            after = data.draft("publish_report", at + 50, report=f"sales-{day}.pdf")
            data.settle(claimed, Succeeded(f'"sales-{day}.pdf"', continue_with=after), at + 50)
            claimed = data.claim("reports", at + 51, "media-1:911:0d52")
            data.settle(claimed, Succeeded("null"), at + 53)
        else:
            claimed = data.claim("reports", data.now - 41, "media-1:911:0d52")
            data.renew("media-1:911:0d52", claimed, data.now - 6)
            data.run(lease.progress, {claimed.lease: Progress(412, 980, "orders of the south west")})


def _stopped(data: ExampleData) -> None:
    job = data.put("send_newsletter", 2500, issue=61, to="list-b")
    data.app.client.pause(job)
    job = data.put("send_newsletter", 2600, issue=60, to="list-z")
    data.app.client.cancel(job)
    claimed_job = data.put("resize_photo", 1700, photo="products/77.tiff", width=4000)
    claimed = data.claim("media", data.now - 1690, "media-1:911:0d52")
    data.settle(claimed, Released("shutdown"), data.now - 1680)
    data.settle(data.claim("media", data.now - 1678, "shop-2:4802:77be"), Succeeded('"77.webp"'), data.now - 1670)
    assert claimed_job.queue == "media"


def _waiting(data: ExampleData) -> None:
    for number in range(37):
        data.put("send_newsletter", 240 - number * 3, issue=62, to=f"list-{number}")
    for number in range(11):
        data.put("resize_photo", 95 - number * 8, photo=f"products/{9200 + number}.jpg")
    for number in range(6):
        data.put(
            "send_receipt",
            50 - number,
            {"delay": 1800.0 + 600 * number},
            order=f"A-205{number}",
            to="later@example.com",
        )


def _running(data: ExampleData) -> None:
    for number in range(5):
        data.put("charge", 26 - number * 4, {"priority": 20}, account=f"acct-{50 + number}", cents=1900 + number)
        worker = ("shop-1:4711:a3f0", "shop-2:4802:77be")[number % 2]
        claimed = data.claim("billing", data.now - 25 + number * 4, worker)
        data.renew(worker, claimed, data.now - 8 + number)
    for number in range(3):
        worker = ("media-1:911:0d52", "media-2:318:e119")[number == 2]
        claimed = data.claim("media", data.now - 64 + 5 * number, worker, 60.0)
        data.renew(worker, claimed, data.now - (34 if number == 2 else 5 - number), 60.0)
        data.run(lease.progress, {claimed.lease: Progress(number + 1, 4, "thumbnails")})


def _limits(data: ExampleData) -> None:
    client = data.app.client
    client.limit_queue("billing", max_running=12, rate=100, per=60)
    client.limit_queue("billing", max_running=3, group="*")
    client.limit_queue("media", max_running=6, fair=True)
    client.pause_queue("mail")


def _schedules(data: ExampleData) -> None:
    tasks = data.app.tasks
    start = data.now - 3 * 3600
    for name, draft, cron, every in (
        ("nightly report", tasks["build_report"].draft("yesterday"), "0 3 * * *", None),
        ("stock of the north", tasks["sync_stock"].draft("north"), None, 1800.0),
        ("newsletter", tasks["send_newsletter"].draft(63, "all"), "30 9 * * mon", None),
        ("stock of the south", tasks["sync_stock"].draft("south"), "*/20 * * * *", None),
    ):
        data.run(schedules.put, name, define(draft, cron, every, "Europe/Berlin", "once", "skip"), at=start)
    for minute in range(0, 3 * 60 + 1, 10):
        at = start + minute * 60
        data.run(schedules.tick, sorted(tasks), lambda at=at: make_id(at, data.dice.randbytes(10)), at=at)
        while True:
            data.promote(at)
            try:
                claimed = data.claim("reports", at + 1, "media-1:911:0d52")
            except IndexError:
                break
            data.settle(claimed, Succeeded("null"), at + data.dice.uniform(2, 9))
    data.app.client.schedules.pause("newsletter")


def _statistics(data: ExampleData) -> None:
    for minute in range(30):
        at = data.now - 60 * minute
        counts = [
            Count(queue, *row)
            for queue in QUEUES
            for row in (("succeeded", 5 + minute % 7), ("retried", 1), ("waits", 3, 4), ("runs", 3, 7), ("failed", 1))
        ]
        counts += [Count(queue, "gauge.queued", 4 + minute, peak=True) for queue in QUEUES]
        data.run(stats.add, counts, at=at)


def _workers(data: ExampleData) -> None:
    for number, (name, (queues, slots)) in enumerate(WORKERS.items()):
        host, pid, _ = name.split(":")
        facts = WorkerFacts(name, host, int(pid), queues, slots, tuple(sorted(data.app.tasks)), LEASE, "0.1.0")
        running = {0: 3, 1: 2, 2: 3, 3: 1}[number]
        data.run(worker_reports.report, new_id(), facts, running, False, at=data.now - 86400 * (number + 1) / 3)
        data.run(worker_reports.report, new_id(), facts, running, number == 1, at=data.now - (41 if number == 3 else 2))


def _people(data: ExampleData) -> None:
    """Changes made by operators."""
    desk, deploy = data.app.client.acting_as("support-desk"), data.app.client.acting_as("deploy")
    page = data.app.client.jobs(state="failed", task="sync_stock").jobs
    desk.resume(page[0])
    deploy.pause_queue("mail")
    deploy.limit_queue("media", max_running=6)
    desk.schedules.pause("newsletter")
    for job in data.app.client.jobs(state="pending", task="send_receipt", limit=2).jobs:
        desk.cancel(job)


def views(app: App) -> dict[str, str]:
    """Where each view is to be seen at its best."""
    client = app.client

    def first(**which: Any) -> str:
        return client.jobs(**which, limit=1).jobs[0].id

    return {
        "overview": "/",
        "overview-month": "/?range=30d",
        "queues": "/queues",
        "queue": "/queues/billing",
        "jobs": "/jobs",
        "job": f"/jobs/{first(task='transcode_video')}",
        "job-steps": f"/jobs/{first(task='fulfil_order', state='succeeded')}",
        "job-waiting": f"/jobs/{first(task='fulfil_order', state='pending')}",
        "job-running": f"/jobs/{first(task='collect_sales', state='running')}",
        "job-failed": f"/jobs/{first(task='charge', state='failed')}",
        "chain": f"/chains/{first(task='publish_report')}",
        "targets": "/targets",
        "target": "/targets?name=account/acct-17",
        "workers": "/workers",
        "schedules": "/schedules",
        "schedule": "/schedules/stock%20of%20the%20south",
        "failures": "/failures",
        "audit": "/audit",
        "confirm": f"/confirm/cancel?job={first(state='running')}",
    }
