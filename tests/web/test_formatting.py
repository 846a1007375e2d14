"""Formatting of text, numbers, durations and timestamps; the cache of chart data."""

from __future__ import annotations

import threading
import time
from datetime import UTC, datetime, timedelta

import pytest
from hypothesis import given
from hypothesis import strategies as st

from relet._web.pages import filters, formatting
from relet._web.pages.cache import Cache

NOW = datetime(2026, 11, 16, 12, 0, tzinfo=UTC)


@pytest.mark.parametrize(
    ("seconds", "text"),
    [
        (None, "\u2013"), (0, "0 s"), (0.0042, "4.2 ms"), (0.25, "250 ms"), (1.0, "1 s"), (3.25, "3.2 s"),
        (59.97, "1 min"), (80, "1 min 20 s"), (3600, "1 h"), (7260, "2 h 1 min"), (90_000, "1 d 1 h"), (-5, "-5 s"),
    ],
)  # fmt: skip
def test_durations_are_formatted_in_the_two_units_that_matter(seconds: float | None, text: str) -> None:
    assert formatting.duration(seconds) == text


@pytest.mark.parametrize(
    ("seconds", "text"),
    [(0.2, "now"), (5, "5 s ago"), (-5, "in 5 s"), (200, "3 min ago"), (10_000, "3 h ago"), (1e6, "12 d ago")],
)  # fmt: skip
def test_moments_are_formatted_relative_to_now(seconds: float, text: str) -> None:
    assert formatting.ago(NOW - timedelta(seconds=seconds), NOW) == text


@pytest.mark.parametrize(("value", "text"), [(0, "0"), (7, "7"), (999.99, "1k"), (1234, "1.23k"), (2_500_000, "2.5M")])
def test_numbers_are_short_where_there_is_little_room(value: float, text: str) -> None:
    assert formatting.short_number(value) == text


@given(st.text(max_size=200))
def test_nothing_invisible_is_left_in_a_text(text: str) -> None:
    assert all(char.isprintable() or char in "\n\t" for char in formatting.visible(text))


@given(st.text(max_size=400), st.integers(4, 60))
def test_a_text_in_a_list_is_one_line_of_limited_length(text: str, limit: int) -> None:
    line = formatting.visible_line(text, limit)
    assert len(line) <= limit
    assert "\n" not in line


def test_a_line_that_is_cut_within_a_password_does_not_show_its_beginning() -> None:
    line = "no answer from postgresql://ada:canary@db/shop"
    for limit in range(20, len(line)):
        assert "ca" not in formatting.visible_line(line, limit)
    assert formatting.visible_line(line) == "no answer from postgresql://ada:[hidden]@db/shop"


def test_a_time_from_a_form_is_utc_unless_it_says_otherwise() -> None:
    typed = {"created_from": "2026-11-16T12:00", "created_to": " 2026-11-16T14:00+02:00"}
    assert filters.arguments(typed) == {"created_from": NOW, "created_to": NOW}
    assert filters.arguments({"created_from": "2026-11-16"}) == {"created_from": NOW.replace(hour=0)}


def test_characters_that_reverse_text_are_spelled_out() -> None:
    assert formatting.visible("a\u202eb\x1b[0m\x00") == "a\u27e8U+202E\u27e9b\u241b[0m\u2400"


def test_a_text_of_megabytes_is_cut_and_says_so() -> None:
    assert formatting.whole("x" * 1_000_000).endswith("934,464 more characters are not shown")


@pytest.mark.parametrize("text", ["{", "[" * 100_000, '{"a": NaN}', ""])
def test_text_that_is_no_json_stays_as_it_is(text: str) -> None:
    assert formatting.pretty(text) in (text, '{\n  "a": NaN\n}')


def test_many_concurrent_readers_compute_once() -> None:
    memory, asked = Cache(), []

    class Store: ...

    store = Store()

    def find() -> int:
        asked.append(1)
        time.sleep(0.05)
        return 7

    threads = [threading.Thread(target=memory.get, args=(store, "key", 60.0, find)) for _ in range(8)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert memory.get(store, "key", 60.0, find) == 7
    assert len(asked) == 1
    assert memory.get(Store(), "key", 60.0, lambda: 8) == 8


def test_a_value_that_is_too_old_is_computed_again() -> None:
    memory, store = Cache(), threading.Thread()
    assert memory.get(store, "key", 0.0, lambda: 1) == 1
    assert memory.get(store, "key", 60.0, lambda: 2) == 2
    assert memory.get(store, "key", 60.0, lambda: 3) == 2
