"""Webhooks: the events of a customer arrive in order, and no customer's server gets more than it can bear.

python webhooks.py                                        # SQLite, in this directory
RELET_URL=postgresql://localhost/shop python webhooks.py  # PostgreSQL
"""

from __future__ import annotations

import json
import urllib.error
import urllib.request
from collections import defaultdict
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from threading import Thread
from typing import Any

from relet import App, Attempt, Backoff, Draft, Fail

app = App()
app.limit_queue("webhooks", max_running=20)
app.limit_queue("webhooks", rate=10, per=1, group="*")  # for each customer


@app.task(queue="webhooks", max_attempts=8, timeout=10, backoff=Backoff(base=0.2, max=3600), on_failure="continue")
def deliver(attempt: Attempt, url: str, event: dict[str, Any]) -> int:
    """Send an event. The id of the job tells the receiver that it has got an event before."""
    headers = {"Content-Type": "application/json", "Idempotency-Key": attempt.job.id}
    request = urllib.request.Request(url, json.dumps(event).encode(), headers)  # noqa: S310
    try:
        with urllib.request.urlopen(request, timeout=5) as answer:  # noqa: S310
            return int(answer.status)
    except urllib.error.HTTPError as error:
        if error.code == 410:
            raise Fail(f"{url} is gone") from None  # no retry: the customer has removed it
        raise


def draft(customer: str, url: str, event: dict[str, Any]) -> Draft[int]:
    """`target` keeps the order of a customer's events, also over retries; `group` is what the rate counts by.

    With on_failure="continue" an event that has failed for good does not hold up those after it.
    """
    return deliver.using(target=f"webhooks {customer}", group=customer).draft(url, event)


class Receivers(BaseHTTPRequestHandler):
    """The servers of three customers: one is well, one is down at first, and one has gone."""

    received: defaultdict[str, list[int]] = defaultdict(list)
    refused: defaultdict[str, int] = defaultdict(int)

    def do_POST(self) -> None:
        customer = self.path.strip("/")
        event = json.loads(self.rfile.read(int(self.headers["Content-Length"])))
        if customer == "globex" and self.refused[customer] < 2:
            self.refused[customer] += 1
            self.send_response(503)
        elif customer == "initech":
            self.send_response(410)
        else:
            self.received[customer].append(event["number"])
            self.send_response(204)
        self.end_headers()

    def log_message(self, *_: object) -> None: ...


def main() -> None:
    app.client.migrate()
    server = ThreadingHTTPServer(("127.0.0.1", 0), Receivers)
    Thread(target=server.serve_forever, daemon=True).start()
    root = f"http://127.0.0.1:{server.server_port}"
    customers = ("acme", "globex", "initech")
    drafts = [draft(name, f"{root}/{name}", {"number": number}) for number in range(8) for name in customers]
    with app.worker(poll_interval=0.2):
        jobs = app.client.wait_many(app.client.enqueue_many(drafts), timeout=120)
    server.shutdown()
    for name in customers:
        print(f"{name} received {Receivers.received[name]}, after {Receivers.refused[name]} refusals")
    print(f"failed: {sorted({job.error for job in jobs if job.error and job.state == 'failed'})}".replace(root, ""))


if __name__ == "__main__":
    main()
