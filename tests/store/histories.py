"""The steps of a generated history, and how often each is taken.

A step is the name of a method of `test_model.History` and its arguments. One strategy for all of them, not a rule for
each: Hypothesis leaves rules out at random, and most of what goes wrong needs all of them together.
"""

from __future__ import annotations

from typing import Any

from hypothesis import strategies as st
from msgspec import UNSET

from relet._core.job import FollowUp, Policy, Raised, Released, Snoozed, Succeeded


def mostly(usual: Any, *others: Any) -> st.SearchStrategy[Any]:
    """The usual in two of three cases, or one of the others."""
    return st.sampled_from([usual] * 2 * len(others) + list(others))


pick = st.integers(0, 9)  # one of those that there are, counted from the newest; for jobs 9 is one that never was
policies = st.builds(
    Policy,
    max_attempts=st.sampled_from([4, 2, 1]),
    lease=mostly(None, 5.0),
    on_expired=mostly("retry", "fail"),
    on_failure=st.sampled_from(["hold", "continue"]),
    on_dependency_failure=st.sampled_from(["hold", "cancel", "run"]),
    follow_up=st.sampled_from([None, FollowUp("u", "failed", "a", 5, Policy(max_attempts=1))]),
)
# A draft but for its id and for the ids in `after`, which are picked from those that there are.
DRAFT_OPTIONS: dict[str, st.SearchStrategy[Any]] = {
    "task": mostly("t", "u"),
    "queue": st.sampled_from(["a", "b"]),
    "priority": mostly(0, 5, -5),
    "policy": policies,
    "target": st.sampled_from([None, None, "x", "y"]),
    "group": st.sampled_from([None, None, "g", "h"]),
    "unique": st.sampled_from([None, None, None, "k", "l", "m"]),
    "unique_for": st.sampled_from([None, 20.0]),
    "delay": mostly(None, 5.0, 50.0),
    "start_by": mostly(None, 3.0, 30.0),  # seconds from now
    "depends_on": st.sampled_from([0, 0, 1, 2]).flatmap(lambda n: st.lists(pick, min_size=n, max_size=n)),
    "known_id": mostly(None, 0, 1, 2),
}
draft_options = st.fixed_dictionaries(DRAFT_OPTIONS)
results = st.sampled_from([None, '"done"', '{"n": 1}'])
outcomes = st.one_of(
    st.builds(Succeeded, results),
    st.tuples(results, draft_options),  # succeeded, and goes on with the chain
    st.builds(Raised, st.just("boom"), st.sampled_from([None, 7.0]), mostly(False, True)),
    st.builds(Snoozed, st.just(5.0)),
    st.builds(Released, st.sampled_from([None, "shutdown"]), mostly(False, True)),
)
batches = st.lists(draft_options, min_size=2, max_size=4)
workers = st.sampled_from(["w1", "w2"])
lost = mostly(False, True)  # the answer, so that the same is said again

Steps = dict[str, tuple[int, dict[str, st.SearchStrategy[Any]]]]  # by name: how often, and the arguments

STEPS: Steps = {
    "enqueue": (3, {"given": batches, "lost": lost}),
    "promote": (1, {}),
    "pass_time": (4, {"seconds": st.sampled_from([0.25, 5.0, 20.0, 40.0, 40.0]), "grace": mostly(0.0, None, 10.0)}),
    "claim": (
        6,
        {
            "if_none": batches,
            "worker": workers,
            "queues": st.sampled_from([["a", "b"], ["b", "a"], ["a"], ["b"]]),
            "wants": st.tuples(*[mostly(4, 1, 2)] * 3),
            "tasks": mostly(["t", "u"], ["t"]),
            "alone": st.booleans(),
            "slots": mostly(None, 0, 1),
            "rescue": st.booleans(),
            "received": mostly("at once", "when repeated", "never"),
        },
    ),
    "renew": (2, {"worker": workers, "forgets": st.sets(pick)}),
    "settle": (
        6,
        {
            "given": st.dictionaries(st.integers(0, 3), outcomes, min_size=1, max_size=4),
            "stale": mostly(False, True),
            "times": mostly(1, 2),
        },
    ),
    "control_job": (
        4,
        {
            "verb": st.sampled_from(["resume", "resume", "pause", "pause", "cancel", "run_now", "delete"]),
            "which": pick,
            "lost": lost,
        },
    ),
    "complete": (2, {"which": pick, "result": results, "successor": st.none() | draft_options, "lost": lost}),
    "control_chain": (
        2,
        {
            "verb": st.sampled_from(["cancel", "complete", "delete", "delete"]),
            "which": pick,
            "successor": st.none() | draft_options,
            "dependents": st.booleans(),
            "lost": lost,
        },
    ),
    "set_queue": (
        1,
        {
            "queue": st.sampled_from(["a", "b", "*"]),
            "limit": st.sampled_from([None, None, UNSET, 3, 2, 1, 0]),
            "paused": mostly(False, None, True),
        },
    ),
    "look": (1, {"which": pick}),
}


# Histories of groups and follow-ups: plain jobs of few groups in one queue, limits that change, and attempts that fail.
grouped_wishes = st.fixed_dictionaries(
    DRAFT_OPTIONS
    | {
        "task": st.just("t"),
        "queue": mostly("a", "b"),
        "priority": st.just(0),
        "policy": st.builds(
            Policy,
            max_attempts=st.sampled_from([1, 2]),
            on_expired=st.sampled_from(["retry", "fail"]),
            follow_up=st.sampled_from([None, FollowUp("u", "failed", "a", 5, Policy(max_attempts=1))]),
        ),
        "target": mostly(None, "x"),
        "group": st.sampled_from(["g", "g", "h", "i", None]),
        "unique": st.none(),
        "delay": st.none(),
        "start_by": st.none(),
        "depends_on": st.just([]),
        "known_id": st.none(),
    }
)
grouped_batches = st.lists(grouped_wishes, min_size=4, max_size=8)
grouped_outcomes = st.one_of(
    st.builds(Succeeded, results),
    st.builds(Raised, st.just("boom"), st.just(0.0), st.booleans()),
    st.builds(Released, st.none(), mostly(False, True)),
)
GROUPED_STEPS: Steps = {
    "enqueue": (2, {"given": grouped_batches, "lost": lost}),
    "set_group_limit": (
        2,
        {
            "queue": mostly("a", "b"),
            "group": st.sampled_from(["*", "g", "h"]),
            "limit": st.sampled_from([1, 2, 3, 0, None]),
        },
    ),
    "set_queue": (1, {"queue": mostly("a", "*"), "limit": st.sampled_from([None, 2, 4]), "paused": st.none()}),
    "pass_time": (1, {"seconds": st.sampled_from([0.25, 40.0]), "grace": st.just(0.0)}),
    "claim": (
        6,
        STEPS["claim"][1]
        | {
            "if_none": grouped_batches,
            "queues": mostly(["a"], ["a", "b"]),
            "wants": st.tuples(*[mostly(4, 1, 2, 9)] * 3),
            "tasks": mostly(["t", "u"], ["t"], ["u"]),
            "slots": st.none(),
            "received": st.just("at once"),
        },
    ),
    "settle": (
        6,
        {
            "given": st.dictionaries(st.integers(0, 5), grouped_outcomes, min_size=1, max_size=6),
            "stale": mostly(False, True),
            "times": mostly(1, 2),
        },
    ),
    "control_job": (1, {"verb": st.sampled_from(["resume", "pause", "cancel", "delete"]), "which": pick, "lost": lost}),
}


def taken_from(steps: Steps) -> st.SearchStrategy[tuple[str, dict[str, Any]]]:
    """One of the steps with its arguments."""
    names = [name for name, (weight, _) in steps.items() for _ in range(weight)]
    return st.sampled_from(names).flatmap(lambda name: st.tuples(st.just(name), st.fixed_dictionaries(steps[name][1])))
