"""A page that places an order."""

from __future__ import annotations

from django.db import transaction
from django.http import HttpRequest, JsonResponse
from django.views.decorators.csrf import csrf_exempt
from django.views.decorators.http import require_POST

from .models import Item, Order
from .tasks import ship


def order_item(name: str, number: int, email: str) -> tuple[int, str]:
    """Store an order and the job that ships it, together. Orders of an item are shipped in their order."""
    with transaction.atomic():
        order = Order.objects.create(item=Item.objects.get(name=name), number=number, email=email)
        result = ship.using(target=f"item-{order.item_id}").enqueue(order.pk)
    return order.pk, result.id


def _place(request: HttpRequest) -> JsonResponse:
    form = request.POST
    order_id, task_id = order_item(form["item"], int(form["number"]), form["email"])
    return JsonResponse({"order": order_id, "task": task_id})


place = require_POST(csrf_exempt(_place))
