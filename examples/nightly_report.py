"""A nightly report: one job per shop adds up the sales, and the report begins when all of them are done.

    python nightly_report.py                                        # SQLite, in this directory
    RELET_URL=postgresql://localhost/shop python nightly_report.py  # PostgreSQL

In production a worker starts it at three in the morning: relet worker nightly_report:app
"""

from __future__ import annotations

import csv
import tempfile
from dataclasses import dataclass
from pathlib import Path

from relet import App, Attempt

app = App()


@dataclass
class Sales:
    shop: str
    orders: int
    cents: int


@app.task(queue="reports", max_attempts=10)
def add_up(shop: str, path: str) -> Sales:
    """The sales of one shop. If it fails, only it is repeated."""
    with Path(path).open(newline="") as file:
        cents = [int(row["cents"]) for row in csv.DictReader(file)]
    return Sales(shop, len(cents), sum(cents))


@app.task(queue="reports")
def report(attempt: Attempt) -> str:
    """Takes the results of the jobs that it depends on."""
    sales = attempt.dependency_results(add_up)
    best = max(sales, key=lambda each: each.cents)
    orders, cents = sum(each.orders for each in sales), sum(each.cents for each in sales)
    return f"{len(sales)} shops, {orders} orders, {cents / 100:.2f} in all; best: {best.shop}"


@app.schedule("0 3 * * *", timezone="Europe/Berlin", overlap="skip", arguments={"folder": "sales"})
@app.task(queue="reports")
def nightly(attempt: Attempt, folder: str) -> str:
    """Enqueue the jobs of all shops and the report, in the transaction that ends this one: all of them, or none.

    The report continues this job, so a caller that waits for the nightly job gets the text of the report.
    """
    drafts = [add_up.draft(path.stem, str(path)) for path in sorted(Path(folder).glob("*.csv"))]
    with attempt.transaction() as tx:
        parts = tx.enqueue_many(drafts)
        return tx.succeed(attempt.continue_with(report.using(depends_on=parts).draft()))


def write_sales(folder: Path, shops: int) -> None:
    for number in range(shops):
        lines = [f"{order},{(order + 1) * (number + 1)}" for order in range(100)]
        (folder / f"shop-{number:02}.csv").write_text("\n".join(["order,cents", *lines]))


def main() -> None:
    app.client.migrate()
    folder = Path(tempfile.mkdtemp(prefix="sales-"))
    write_sales(folder, shops=12)
    with app.worker(poll_interval=0.2):
        print(app.client.result(nightly.enqueue(str(folder)), timeout=120))


if __name__ == "__main__":
    main()
