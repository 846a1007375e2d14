"""The rule for comprehensions: refused and accepted code."""

from __future__ import annotations

import ast
from pathlib import Path

import pytest

from tools import check_expressions
from tools.check_expressions import problems

REFUSED = [
    "rows = [[cell for cell in line] for line in lines]",
    "rows = [cell for cell in [one for one in cells]]",
    "rows = [cell for cell in cells if any(one for one in cell)]",
    "first, second = [a for a in x], [b for b in y]",
    "total = sum(a for a in x) + sum(b for b in y)",
    "return_value = {'a': [a for a in x], 'b': {b for b in y}}",
    "call(*(a for a in x), key={a: b for a, b in y})",
    "text = f'{[a for a in x]} and {[b for b in y]}'",
    "rows = sorted((a for a in x), key=lambda a: sum(b for b in a))",
    "if any(a for a in x) and all(b for b in y): pass",
    "def f(): return [a for a in x], [b for b in y]",
    "rows = [c for a in x for b in a for c in b]",
]

FINE = [
    "rows = [line.cell for line in lines if line]",
    "rows = [cell for line in lines for cell in line]",
    "first = [a for a in x]\nsecond = [b for b in y]",
    "for a in (one for one in x): second = [b for b in a]",
    "if any(a for a in x): second = [b for b in y]",
    "def f(a=[b for b in x], c=[d for d in y]): pass",
    "rows = sorted((a for a in x), key=lambda a: a.size)",
]


@pytest.mark.parametrize("text", REFUSED)
def test_a_dense_expression_is_found(text: str) -> None:
    assert len(list(problems(ast.parse(text)))) == 1


@pytest.mark.parametrize("text", FINE)
def test_one_comprehension_in_each_expression_is_let_through(text: str) -> None:
    assert list(problems(ast.parse(text))) == []


def test_a_problem_is_named_with_its_file_and_line(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    (tmp_path / "src" / "relet").mkdir(parents=True)
    (tmp_path / "src" / "relet" / "dense.py").write_text(f"\n\n{REFUSED[0]}\n", "utf-8")
    monkeypatch.setattr(check_expressions, "ROOT", tmp_path)
    assert check_expressions.main() == 1
    assert capsys.readouterr().out == "src/relet/dense.py:3: 2 comprehensions in one expression\n"


def test_all_code_keeps_the_rule(capsys: pytest.CaptureFixture[str]) -> None:
    assert check_expressions.main() == 0, capsys.readouterr().out
