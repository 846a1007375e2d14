"""The orders of the shop."""

from django.apps import AppConfig


class OrdersConfig(AppConfig):  # type: ignore[misc]
    """Orders."""

    name = "orders"
