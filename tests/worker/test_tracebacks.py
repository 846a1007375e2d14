"""The stored traceback of a failed attempt is the one that Python prints, also when the same place fails again."""

from __future__ import annotations

import traceback
from collections.abc import Callable
from types import FunctionType

import pytest

from relet._worker import outcome


def fail(text: str = "no") -> None:
    raise ValueError(text)


def fail_below() -> None:
    fail("below")


def fail_by_cause() -> None:
    try:
        fail("first")
    except ValueError as error:
        raise KeyError("then") from error


def fail_while_handling() -> None:
    try:
        fail("first")
    except ValueError:
        fail("then")


def fail_without_context() -> None:
    try:
        fail("first")
    except ValueError:
        raise KeyError("then") from None


def fail_in_group() -> None:
    raise ExceptionGroup("two", [ValueError(1), KeyError(2)])


def fail_with_note() -> None:
    error = ValueError("noted")
    error.add_note("see the manual")
    raise error


def fail_in_depth(depth: int = 30) -> None:
    if depth == 0:
        fail("deep")
    fail_in_depth(depth - 1)


def fail_without_source() -> None:
    function_of("{}['x']", "<no file>")()


def fail_to_parse() -> None:
    compile("1 +", "shop.py", "exec")


def function_of(source: str, file: str) -> Callable[[], object]:
    return FunctionType(compile(source, file, "exec"), {})


FAILING = [
    fail, fail_below, fail_by_cause, fail_while_handling, fail_without_context, fail_in_group, fail_with_note,
    fail_in_depth, fail_without_source, fail_to_parse,
]  # fmt: skip


def raised_by(function: Callable[[], object]) -> BaseException:
    try:
        function()
    except BaseException as error:
        return error
    raise AssertionError("it raised nothing")


@pytest.mark.parametrize("function", FAILING, ids=lambda function: function.__name__)
def test_a_traceback_is_as_python_prints_it_each_time(function: Callable[[], object]) -> None:
    for _ in range(3):
        error = raised_by(function)
        assert outcome.describe(error).endswith("\n\n" + "".join(traceback.format_exception(error)))


def test_the_same_function_fails_in_two_places() -> None:
    def either(first: bool) -> None:
        if first:
            fail("first")
        fail("second")

    for first in (True, False, True):
        error = raised_by(lambda first=first: either(first))  # type: ignore[misc]
        assert "".join(traceback.format_exception(error)) in outcome.describe(error)


def test_texts_of_frames_do_not_pile_up() -> None:
    for number in range(outcome.MAX_FRAMES + 10):
        error = raised_by(function_of("1 / 0", f"<{number}>"))
        assert f'File "<{number}>"' in outcome.describe(error)
    assert len(outcome._frames) <= outcome.MAX_FRAMES
