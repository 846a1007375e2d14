"""The pages of the admin, by Django's test client: run it with DJANGO_SETTINGS_MODULE in the directory of the shop."""

from __future__ import annotations

import re
from datetime import timedelta
from typing import Any

import django
from django.core.management import call_command

django.setup()

from django.contrib.auth.models import Permission, User
from django.db import connection
from django.test import Client
from django.utils import timezone
from orders.tasks import receipt, ship

from relet.contrib.django import get_app

LIST = "/admin/relet/job/"


def signed_in(name: str, *permissions: str) -> Any:
    user = User.objects.create_user(name, password="x", is_staff=True)
    for one in permissions:
        user.user_permissions.add(Permission.objects.get(codename=one))
    client = Client()
    client.force_login(user)
    return client


def text_of(response: Any) -> str:
    assert response.status_code == 200, response
    return str(response.content.decode())


def page(id: str) -> str:
    return f"{LIST}{id}/change/"


def state(result: Any) -> str:
    job = get_app().client.get(result.id)
    assert job is not None
    return job.state.value


def rows(text: str) -> list[str]:
    return re.findall(rf"{LIST}([0-9a-f-]{{36}})/change/", text)


def main() -> None:
    call_command("migrate", verbosity=0)
    failed = ship.enqueue(99)  # there is no such order
    call_command("relet", "worker", "--until-idle", "--log-level", "error")
    waiting = receipt.enqueue(1)
    later = receipt.using(run_after=timezone.now() + timedelta(days=1), target="acct-7").enqueue(2)
    operator = signed_in("ada", "view_job", "change_job")

    everything = text_of(operator.get(LIST))
    assert rows(everything) == [later.id, waiting.id, failed.id], everything
    assert rows(text_of(operator.get(LIST, {"state__exact": "failed"}))) == [failed.id]
    assert rows(text_of(operator.get(LIST, {"queue": "mail"}))) == [later.id, waiting.id]
    assert rows(text_of(operator.get(LIST, {"task": "orders.tasks.ship", "created": "1"}))) == [failed.id]
    assert rows(text_of(operator.get(LIST, {"q": "acct-7"}))) == [later.id]
    assert rows(text_of(operator.get(LIST, {"q": waiting.id}))) == [waiting.id]

    details = text_of(operator.get(page(failed.id)))
    assert "orders.models.Order.DoesNotExist" in details
    assert "Traceback (most recent call last)" in details
    assert 'value="resume"' in details
    assert 'value="run_now"' not in details
    with connection.cursor() as cursor:
        table = "relet.all_jobs" if connection.vendor == "postgresql" else "relet_all_jobs"
        cursor.execute(f"select token from {table} where token is not null")
        tokens = [str(row[0]) for row in cursor.fetchall()]
    assert tokens
    assert not [one for one in tokens if one in details + everything]

    def post(id: str, verb: str, client: Any = operator) -> int:
        return int(client.post(page(id), {"verb": verb}).status_code)

    def expect(result: Any, found: int, code: int, expected: str) -> None:
        assert (found, state(result)) == (code, expected), (found, state(result))

    expect(failed, post(failed.id, "resume"), 302, "pending")
    expect(later, post(later.id, "run_now"), 302, "pending")
    expect(waiting, post(waiting.id, "pause"), 302, "paused")
    expect(waiting, post(waiting.id, "delete"), 403, "paused")
    chosen = {"action": "cancel_jobs", "_selected_action": [waiting.id, later.id]}
    done = text_of(operator.post(LIST, chosen, follow=True))
    assert "2 jobs: cancelled, or asked to stop" in done
    assert [state(waiting), state(later)] == ["cancelled", "cancelled"]
    again = text_of(operator.post(LIST, {**chosen, "action": "pause_jobs"}, follow=True))
    assert f"Cannot pause job {waiting.id}: it is cancelled" in again
    assert {entry.who for entry in get_app().client.audit().entries} == {"admin:ada"}

    reader = signed_in("bob", "view_job")
    assert 'name="verb"' not in text_of(reader.get(page(failed.id)))
    expect(failed, post(failed.id, "cancel", reader), 403, "pending")
    assert "cancel_jobs" not in text_of(reader.get(LIST))
    assert signed_in("eve").get(page(failed.id)).status_code == 403
    assert operator.get(page("no-id")).status_code == 404
    assert operator.get(page("01930000-0000-7000-8000-000000000000")).status_code == 404
    assert operator.get(f"{LIST}add/").status_code == 403
    print("all pages are as they should be")


if __name__ == "__main__":
    main()
