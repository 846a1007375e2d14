"""The work that follows an order."""

from __future__ import annotations

from django.db.models import F

from relet import Backoff
from relet.contrib.django import task

from .models import Item, Order


class OutOfStock(Exception):
    """There is too little in stock for an order."""


@task(atomic=True, fail_on=OutOfStock)
def ship(order_id: int) -> str:
    """Take the items from the stock: once, because the job is completed in the transaction that takes them."""
    order = Order.objects.select_related("item").get(pk=order_id)
    taken = Item.objects.filter(pk=order.item_id, stock__gte=order.number).update(stock=F("stock") - order.number)
    if not taken:
        raise OutOfStock(f"{order.item.name}: {order.number} ordered")
    Order.objects.filter(pk=order_id).update(shipped=True)
    receipt.using(unique=f"receipt-{order_id}").enqueue(order_id)
    return f"{order.number} x {order.item.name}"


@task(queue_name="mail", max_attempts=5, backoff=Backoff(base=1, max=60))
def receipt(order_id: int) -> str:
    """Send a receipt. It is enqueued by the transaction that ships the order."""
    order = Order.objects.get(pk=order_id)
    return f"receipt for order {order.pk} to {order.email}"
