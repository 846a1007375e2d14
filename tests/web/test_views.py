"""Every view, over a full store, an empty one and a hostile one."""

from __future__ import annotations

import re
import sys
from datetime import timedelta
from html.parser import HTMLParser
from itertools import pairwise
from typing import Any

import msgspec
import pytest

from relet import App
from relet._core.worker import WorkerFacts
from relet._store.flows import inspect as inspection
from relet._store.flows import stats, worker_reports
from relet._store.flows.stats import Count
from relet._tasks.task import new_id
from relet._web.pages import PAGES, STYLE, refused, render, respond, sign_in
from relet._web.pages.formatting import visible
from relet._web.pages.page import problem
from relet._web.pages.schedules import upcoming
from tests.harness import harness_of
from tests.web.conftest import ask, view_of, walk
from tests.web.hostile import MARK

VOID = {"meta", "link", "input", "path", "rect", "circle", "line", "img", "br", "option"}
OURS = {"script", "title", "textarea"}


class Reader(HTMLParser):
    """Reads a document: its elements, its text, what does not close."""

    def __init__(self) -> None:
        super().__init__(convert_charrefs=True)
        self.open: list[str] = []
        self.elements: list[tuple[str, dict[str, str | None]]] = []
        self.text: list[str] = []
        self.crossed: list[str] = []

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        self.elements.append((tag, dict(attrs)))
        if tag not in VOID:
            self.open.append(tag)

    def handle_startendtag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        self.elements.append((tag, dict(attrs)))

    def handle_endtag(self, tag: str) -> None:
        if tag in VOID:
            return
        if self.open and self.open[-1] == tag:
            self.open.pop()
        else:
            self.crossed.append(f"</{tag}> in {self.open[-3:]}")

    def handle_data(self, data: str) -> None:
        self.text.append(data)


def read(document: str) -> Reader:
    reader = Reader()
    reader.feed(document)
    reader.close()
    return reader


@pytest.fixture(scope="module")
def documents(shop: App) -> dict[str, Reader]:
    """Every view of the full store, read, by address. It is mounted at /queue."""
    found = {}
    for path, address, params in walk(shop):
        page, document = ask(shop, path, address, params, root="/queue")
        assert page.status == 200, address
        found[f"{address} {params}"] = read(document)
    return found


def test_every_view_of_a_full_store_is_a_well_formed_document(documents: dict[str, Reader]) -> None:
    for address, reader in documents.items():
        assert (reader.crossed, reader.open) == ([], []), address
        ids = [attributes["id"] for _, attributes in reader.elements if "id" in attributes]
        assert len(ids) == len(set(ids)), address


def test_every_view_of_an_empty_store_describes_its_content(empty: App) -> None:
    for path in ("/", "/queues", "/jobs", "/targets", "/workers", "/schedules", "/failures", "/audit"):
        page, document = ask(empty, path)
        assert page.status == 200
        assert 'class="empty"' in document, path
    assert "No job has failed." in ask(empty, "/failures")[1]
    assert "No job has failed." in ask(empty, "/jobs", "/jobs?state=failed")[1]


def test_nothing_is_inline_that_the_policy_forbids(documents: dict[str, Reader]) -> None:
    """No style attributes, no handlers, no scripts but our own file."""
    for address, reader in documents.items():
        for tag, attributes in reader.elements:
            assert not [name for name in attributes if name == "style" or name.startswith("on")], (address, tag)
            assert tag != "style"
            if tag == "script":
                assert (attributes["src"] or "").startswith("/queue/static/")


@pytest.mark.long
def test_a_hostile_store_is_rendered_as_text(hostile_shop: App) -> None:
    seen = 0
    for path, address, params in walk(hostile_shop):
        if "enqueue" in address:
            continue
        page, document = ask(hostile_shop, path, address, params)
        reader = read(document)
        assert page.status in (200, 400), address  # a queue of such a name can be shown, not acted on
        assert (reader.crossed, reader.open) == ([], []), address
        _is_harmless(reader, address)
        assert "\u202e" not in document
        assert "\x1b" not in document
        assert len(document) < 500_000, address
        seen += MARK in "".join(reader.text)
    assert seen > 40


def test_a_hostile_text_is_rendered_to_the_letter(hostile_shop: App) -> None:
    job = hostile_shop.client.jobs(state="failed", limit=1).jobs[0]
    text = "".join(read(ask(hostile_shop, "/jobs/{id}", "/", {"id": job.id})[1]).text)
    assert job.error is not None
    assert visible(job.error)[:60_000] in text
    assert visible(job.group or "") in text


def _is_harmless(reader: Reader, address: str) -> None:
    for tag, attributes in reader.elements:
        assert tag not in ("img", "b") or (tag == "b" and not attributes), (address, tag)
        assert not [name for name in attributes if name.startswith("on")], (address, tag)
        for name in ("href", "action", "src", "formaction"):
            assert (attributes.get(name) or "/").startswith(("/", "#main")), (address, attributes)
            assert not (attributes.get(name) or "/").startswith("//"), (address, attributes)
    scripts = [tag for tag, _ in reader.elements if tag == "script"]
    assert len(scripts) == 1, address


def test_a_hostile_text_in_the_url_is_rendered_as_text(shop: App) -> None:
    attack = "%3Cscript%3Ealert(1)%3C/script%3E%22%20onfocus=x"
    for address in (
        f"/jobs?task={attack}",
        f"/jobs?state={attack}",
        f"/jobs?created_from={attack}",
        f"/?range={attack}",
        f"/jobs?cursor={attack}",
    ):
        page, document = ask(shop, address.split("?")[0], address)
        assert page.status in (200, 400)
        _is_harmless(read(document), address)
    for path, params in (
        ("/jobs/{id}", {"id": "<b>"}),
        ("/schedules/{name}", {"name": "<b>"}),
        ("/confirm/{action}", {"action": "<b>"}),
    ):
        page, document = ask(shop, path, "/", params)
        assert page.status == 404
        _is_harmless(read(document), path)


@pytest.mark.long
def test_who_may_only_read_sees_no_action(shop: App) -> None:
    for path, address, params in walk(shop):
        page, document = ask(shop, path, address, params, role="read")
        reader = read(document)
        if address.startswith("/confirm"):
            assert page.status == 403
        forms = [attributes for tag, attributes in reader.elements if tag == "form"]
        assert [form["action"] for form in forms if form["method"] == "post"] == ["/logout"], address
        assert not [a for _, a in reader.elements if "data-confirm" in a and a.get("id") != "chosen"], address
        assert not [
            a for tag, a in reader.elements if tag == "input" and a.get("type") == "checkbox" and a.get("name")
        ], address
        assert "/confirm/" not in document.replace('action="/confirm/bulk"', ""), address


def test_all_links_begin_with_the_root(documents: dict[str, Reader]) -> None:
    for address, reader in documents.items():
        for tag, attributes in reader.elements:
            for name in ("href", "action", "src", "data-live", "data-root"):
                value = attributes.get(name)
                assert not value or value.startswith(("/queue", "#")), (address, tag, value)


def test_live_pages_are_sent_the_content_of_main(shop: App) -> None:
    view = view_of(shop, "/workers")
    workers = dict(PAGES)["/workers"]
    inside, whole = respond(workers, view, {}, only_main=True)[1], respond(workers, view, {})[1]
    assert "<main" not in inside
    assert "<html" not in inside
    assert [tag for tag, _ in read(inside).elements] == [tag for tag, _ in read(whole.split("<main")[1]).elements][
        : len(read(inside).elements)
    ]


@pytest.mark.parametrize("path", ["/workers", "/queues", "/failures", "/schedules", "/audit", "/targets"])
def test_the_content_sent_to_live_pages_is_the_same_while_nothing_happens(shop: App, path: str) -> None:
    sent = []
    for later in (0, 7):
        view = view_of(shop, path)
        view = view_of(shop, path, now=view.now + timedelta(seconds=later))
        sent.append(respond(dict(PAGES)[path], view, {}, only_main=True)[1])
    assert sent[0] == sent[1]


def test_payloads_and_results_are_redacted_before_they_are_rendered(shop: App) -> None:
    job = shop.client.jobs(task="charge", state="succeeded", limit=1).jobs[0]
    _, document = ask(shop, "/jobs/{id}", "/", {"id": job.id}, redact=lambda text: '{"account": "hidden"}')
    assert "hidden" in document
    assert "cents" not in document


@pytest.mark.parametrize("path", ["/jobs/{id}", "/chains/{id}"])
def test_a_job_that_is_not_there_is_a_404(shop: App, path: str) -> None:
    page, document = ask(shop, path, "/", {"id": "01930000-0000-7000-8000-000000000000"})
    assert page.status == 404
    assert "There is no job" in document


def test_a_job_view_tells_its_life_in_words_too(shop: App) -> None:
    job = shop.client.jobs(task="transcode_video", limit=1).jobs[0]
    document = ask(shop, "/jobs/{id}", "/", {"id": job.id})[1]
    text = re.sub(r"\s+", " ", " ".join(read(document).text))
    for word in ("snoozed", "lost", "succeeded", "media-2:318:e119", "worker lost"):
        assert word in text


def test_a_search_that_has_not_ended_says_how_far_it_came(shop: App, monkeypatch: Any) -> None:
    monkeypatch.setattr(sys.modules["relet._web.pages.jobs"], "SCAN", 5)
    _, document = ask(shop, "/jobs", "/jobs?task=nothing-of-this-name")
    assert "Searched back to" in document
    assert "cursor=" in document


def test_a_page_counts_the_rows_that_it_has_no_room_for(empty: App) -> None:
    facts = WorkerFacts("w:1:a", "w", 1, tuple(f"queue-{n}" for n in range(30)), 4, ("charge",), 30.0, "1")
    empty._store().run(worker_reports.report, new_id(), facts, 0, False, [Count("mail", "succeeded", 12_345_678)])
    assert "and 18 more" in ask(empty, "/workers")[1]
    assert '<strong title="12,345,678">12.3M</strong>' in ask(empty, "/")[1]


def test_a_paused_job_at_the_head_of_a_line_is_listed_with_a_remedy(empty: App) -> None:
    first, second = (empty.tasks["sync_stock"].using(target="x").enqueue() for _ in range(2))
    empty.client.pause(first)
    page = ask(empty, "/targets", "/targets?name=x")[1]
    assert "The first in line is paused" in page
    assert ("Resume the first in line" in page, first.id in page, second.id in page) == (True, True, True)
    assert "keeps its place in line" in ask(empty, "/jobs")[1]


def test_how_far_a_job_says_that_it_is_stands_in_the_list(shop: App) -> None:
    assert "25 % <bdi>thumbnails" in re.sub(r"\s+", " ", ask(shop, "/jobs", "/jobs?state=running&queue=media")[1])


def test_a_bulk_verb_on_a_group_does_not_apply_to_others(empty: App) -> None:
    for error in ("TimeoutError: 30 s", "TimeoutError: no route to db", "ValueError: 5"):
        empty.tasks["sync_stock"].enqueue()
        (job,) = harness_of(empty).claim(1, queues=("reports",))
        harness_of(empty).fail(job, error)
    rows = ask(empty, "/failures")[1].split("<tr>")[2:]
    can_cancel = {re.search(r"\w+Error: [\w …]*", row)[0]: "Cancel all" in row for row in rows}  # type: ignore[index]
    assert can_cancel == {"TimeoutError: … s": False, "TimeoutError: no route to db": True, "ValueError: …": True}


def test_a_schedule_tells_its_next_ticks(shop: App) -> None:
    info = shop.client.schedules.get("stock of the south")
    assert info is not None
    ticks = upcoming(info)
    assert len(ticks) == 5
    assert {(later - earlier).total_seconds() for earlier, later in pairwise(ticks)} == {1200.0}
    assert upcoming(msgspec.structs.replace(info, paused=True)) == []
    assert upcoming(msgspec.structs.replace(info, timezone="Nowhere/Land")) == ticks[:1]


def test_a_refused_request_gets_a_page_of_escaped_text(empty: App) -> None:
    attack = '"><script>alert(1)</script>'
    with_advice = render(problem(attack, attack, 404, attack), view_of(empty))
    for document in (sign_in("/queue", attack, attack), refused("/queue", attack, attack, 400), with_advice):
        reader = read(document)
        assert (reader.crossed, reader.open) == ([], [])
        assert [a.get("src", "") for tag, a in reader.elements if tag == "script" and "src" not in a] == []
        assert attack in "".join(reader.text)
    assert STYLE in sign_in("", "/")  # to the letter: the policy allows it by its hash


def test_a_job_is_found_by_its_id(shop: App) -> None:
    job = shop.client.jobs(limit=1).jobs[0]
    assert ask(shop, "/jobs", f"/jobs?id={job.id}")[0].template == "job.html"
    assert ask(shop, "/jobs", "/jobs?id=nonsense")[0].status == 404


def test_names_with_slashes_and_dots_have_links_that_browsers_leave_alone(shop: App) -> None:
    view = view_of(shop)
    assert view.target_link("a/b") == "/targets?name=a%2Fb"
    assert view.target_link("..") == "/targets?name=.."
    assert view.target_link("acct 7") == "/targets/acct%207"
    assert "account/acct-17" in ask(shop, "/targets", "/targets?name=account/acct-17")[1]


@pytest.mark.parametrize("path", ["/", "/queues", "/jobs"])
def test_numbers_that_were_not_counted_for_this_page_say_of_when_they_are(
    empty: App, monkeypatch: pytest.MonkeyPatch, path: str
) -> None:
    charge = empty.tasks["charge"]
    for _ in range(4):
        charge.enqueue("acct-7", 500)
    assert "too many jobs" not in ask(empty, path)[1]
    monkeypatch.setattr(inspection, "MAX_COUNTED", 2)
    assert "these numbers are of the newest jobs only" in ask(empty, path)[1]
    empty._store().run(stats.save_sample, empty._store().run(inspection.counted_queues))
    page = ask(empty, path)[1]
    assert "these numbers were counted <time" in " ".join(page.split())
