"""Tests of the shop, by Django's test runner: `manage.py test`."""

from __future__ import annotations

from django.core.management import call_command
from django.test import TestCase, TransactionTestCase

from relet.contrib.django import get_app

from .models import Item, Order
from .tasks import ship
from .views import order_item


class PlacingTests(TestCase):  # type: ignore[misc]
    """In a transaction that is never committed: no worker sees the job, but the test does."""

    def test_an_order_is_stored_with_its_task(self) -> None:
        Item.objects.create(name="lamp", stock=1)
        with self.captureOnCommitCallbacks() as callbacks:
            order_id, task_id = order_item("lamp", 1, "ada@example.org")
        self.assertEqual(ship.get_result(task_id).args, [order_id])
        self.assertEqual(len(callbacks), 1)  # task_enqueued


class ShippingTests(TransactionTestCase):  # type: ignore[misc]
    """With a worker, which opens its connections itself."""

    def test_an_order_is_shipped(self) -> None:
        Item.objects.create(name="lamp", stock=3)
        response = self.client.post("/orders/", {"item": "lamp", "number": 2, "email": "ada@example.org"})
        call_command("relet", "worker", "--until-idle", "--log-level", "error")
        result = ship.get_result(response.json()["task"])
        self.assertEqual(result.return_value, "2 x lamp")
        self.assertTrue(Order.objects.get().shipped)
        self.assertEqual(Item.objects.get().stock, 1)
        self.assertEqual(get_app().client.count(queue="mail", state="succeeded"), 1)  # the receipt
