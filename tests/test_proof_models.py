"""The models of `proof/`: spin finds no error in the algorithms of the code, and the named one in each variant."""

from __future__ import annotations

import pytest

run = pytest.importorskip("proof.run", reason="the models are in the repository, not in the source distribution")

MODELS = sorted({one.model for one in run.variants()})

needs_spin = pytest.mark.skipif(bool(run.missing()), reason="spin and gcc are not installed")


def test_every_model_holds_as_it_stands_and_has_variants_that_break() -> None:
    for model in MODELS:
        variants = list(run.variants([model]))
        assert [one.name for one in variants if one.expected == "holds"][:1] == ["-"], model
        assert sum(one.expected != "holds" for one in variants) >= 2, model


@pytest.mark.parametrize(
    ("output", "found"),
    [
        ("pan:1: assertion violated fence (at depth 7)\nerrors: 1", "fence"),
        ("pan:1: acceptance cycle (at depth 7)\nerrors: 1", "cycle"),
        ("pan:1: invalid end state (at depth 7)\nerrors: 1", "end state"),
        ("error: max search depth too small\nState-vector 60 byte, errors: 0", "search not complete"),
        ("\tinvalid end states\t+\nState-vector 60 byte, depth reached 9, errors: 0", "holds"),
        ("", "unknown"),
    ],
)
def test_the_result_of_a_search_is_recognised(output: str, found: str) -> None:
    assert run.found_in(output) == found


@pytest.mark.long
@needs_spin
def test_a_request_to_cancel_is_never_lost_in_the_model() -> None:
    holds, *_, breaks = run.variants(["cancel"])
    assert [run.check(holds).found, run.check(breaks).found] == ["holds", breaks.expected]


@needs_spin
@pytest.mark.long
@pytest.mark.parametrize("model", MODELS)
def test_every_variant_of_a_model_is_as_its_header_expects(model: str, capsys: pytest.CaptureFixture[str]) -> None:
    assert run.main([model]) == 0, capsys.readouterr().out
