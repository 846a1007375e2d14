"""The limits of running jobs by group, in the form that limits a queue."""

from __future__ import annotations

from typing import Any
from urllib.parse import urlencode

import pytest

pytest.importorskip("starlette")

from relet import App
from tests.harness import harness_of
from tests.web.api_client import ApiClient, charge
from tests.web.test_views import read

FIELDS = ("queue", "max_running", "rate", "per", "fair", "limited_group", "group_limit")


def form(ask: ApiClient, queue: str = "billing") -> list[tuple[str, str]]:
    """The fields of the form as a browser would send them."""
    answer = ask.request("GET", "/confirm/limit-queue", params={"queue": queue})
    assert answer.status_code == 200
    inputs = [attributes for tag, attributes in read(answer.text).elements if tag == "input"]
    sent = [one for one in inputs if one["name"] in FIELDS and (one.get("type") != "checkbox" or "checked" in one)]
    return [(one["name"] or "", one["value"] or "") for one in sent]


def send(ask: ApiClient, fields: list[tuple[str, str]]) -> Any:
    headers = {"content-type": "application/x-www-form-urlencoded"}
    answer = ask.request("POST", "/act/limit-queue", content=urlencode(fields), headers=headers)
    assert answer.status_code == 303
    return answer


def put(fields: list[tuple[str, str]], group: str, number: str) -> list[tuple[str, str]]:
    """The form with this number for a group: in the field of the group, or in the last one, for another group."""
    groups = [value for name, value in fields if name == "limited_group"]
    index = groups.index(group) if group in groups else len(groups) - 1
    names = [at for at, (name, _) in enumerate(fields) if name == "limited_group"]
    fields = list(fields)
    fields[names[index]] = ("limited_group", group)
    fields[names[index] + 1] = ("group_limit", number)
    return fields


def limits(app: App, queue: str = "billing") -> dict[str, int]:
    found = [one for one in app.client.queues() if one.queue == queue]
    return {limit.group: limit.max_running for one in found for limit in one.group_limits}


def test_limits_by_group_are_set_changed_and_removed(ask: ApiClient, api_app: App) -> None:
    send(ask, put(form(ask), "*", "2"))
    send(ask, put(form(ask), "acme", "1"))
    assert limits(api_app) == {"*": 2, "acme": 1}
    text = ask.request("GET", "/queues").text
    assert "at most 2 of each group run at once · at most 1 of group acme run at once" in text

    jobs = [charge(api_app, group=group) for group in ("acme", "acme", "other", "other", "other")]
    assert len(harness_of(api_app).claim(len(jobs), ("billing",))) == 3, "one of acme, two of the other group"

    send(ask, put(form(ask), "acme", "0"))
    assert limits(api_app) == {"*": 2, "acme": 0}
    send(ask, put(form(ask), "*", ""))
    assert limits(api_app) == {"acme": 0}
    send(ask, put(form(ask), "acme", ""))
    assert limits(api_app) == {}
    assert len(harness_of(api_app).claim(len(jobs), ("billing",))) == 2


def test_only_differences_are_changed_and_recorded(ask: ApiClient, api_app: App) -> None:
    api_app.client.limit_queue("billing", max_running=7)
    for group in ("a", " b ", "c"):
        api_app.client.limit_queue("billing", max_running=1, group=group)
    send(ask, put(form(ask), " b ", "5"))
    assert limits(api_app) == {"a": 1, " b ": 5, "c": 1}
    entries = [one.detail for one in api_app.client.audit().entries]
    assert entries == [{"max_running": 5, "group": " b "}, {"max_running": 7, "fair": False}]


@pytest.mark.parametrize(
    ("group", "number"), [("acme", "many"), ("acme", "-1"), ("acme", "2000000"), ("", "5"), ("x" * 600, "5")]
)
def test_a_limit_that_is_refused_changes_nothing(ask: ApiClient, api_app: App, group: str, number: str) -> None:
    fields = [(name, "9" if name == "max_running" else value) for name, value in form(ask)]
    answer = send(ask, put(fields, group, number))
    assert "relet_said=" in answer.headers["set-cookie"]
    assert api_app.client.queues() == []
    assert api_app.client.audit().entries == []


def test_a_rate_that_is_refused_changes_nothing_either(ask: ApiClient, api_app: App) -> None:
    fields = [*put(form(ask), "acme", "5"), ("group", "acme"), ("group_rate", "3"), ("group_per", "soon")]
    send(ask, fields)
    assert api_app.client.queues() == []


def test_all_queues_together_have_no_limits_by_group(ask: ApiClient, api_app: App) -> None:
    assert not [name for name, _ in form(ask, "*") if name == "limited_group"]
    send(ask, [("queue", "*"), ("max_running", "9"), ("limited_group", "acme"), ("group_limit", "5")])
    assert api_app.client.queues() == []


def test_of_many_groups_the_form_has_the_first_and_names_the_number_of_the_others(ask: ApiClient, api_app: App) -> None:
    for number in range(52):
        api_app.client.limit_queue("billing", max_running=1, group=f"acct-{number:02}")
    assert "47 more groups have a limit" in ask.request("GET", "/queues").text
    assert "2 more groups have a limit" in ask.request("GET", "/confirm/limit-queue?queue=billing").text
    send(ask, put(form(ask), "acct-51", ""))
    assert len(limits(api_app)) == 51
