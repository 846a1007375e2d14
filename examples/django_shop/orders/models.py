"""Orders and stock."""

from __future__ import annotations

from django.db import models


class Item(models.Model):  # type: ignore[misc]
    """An item that the shop sells."""

    name = models.CharField(max_length=50, unique=True)
    stock = models.PositiveIntegerField()


class Order(models.Model):  # type: ignore[misc]
    """An order of one item."""

    item = models.ForeignKey(Item, on_delete=models.PROTECT)
    number = models.PositiveIntegerField()
    email = models.EmailField()
    shipped = models.BooleanField(default=False)
