"""`manage.py demo`: create the tables, place orders, run a worker until all is done, and print what happened."""

from __future__ import annotations

from typing import Any

from django.core.management import call_command
from django.core.management.base import BaseCommand

from orders.models import Item, Order
from orders.tasks import receipt, ship
from orders.views import order_item


class Command(BaseCommand):  # type: ignore[misc]
    """Shows the shop at work."""

    help = "Place orders and run the tasks that follow."

    def handle(self, *args: Any, **options: Any) -> None:
        call_command("migrate", verbosity=0)
        Order.objects.all().delete()
        Item.objects.all().delete()
        Item.objects.create(name="lamp", stock=5)
        placed = [order_item("lamp", number, "ada@example.org") for number in (2, 3, 1)]
        self.stdout.write(
            f"placed {len(placed)} orders; nothing is shipped: {Order.objects.filter(shipped=True).count()}"
        )
        call_command("relet", "worker", "--until-idle", "--log-level", "warning")
        for order_id, task_id in placed:
            result = ship.get_result(task_id)
            text = result.return_value if result.status == "SUCCESSFUL" else result.errors[0].exception_class_path
            self.stdout.write(f"order {order_id - placed[0][0] + 1}: {result.status} {text}")
        sent = receipt.get_backend().app.client.jobs(queue="mail").jobs
        self.stdout.write(f"receipts sent: {sum(job.state == 'succeeded' for job in sent)}")
        self.stdout.write(f"lamps in stock: {Item.objects.get(name='lamp').stock}")
