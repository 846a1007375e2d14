"""The mutants fit the code. `python -m tests.mutants` judges them."""

from __future__ import annotations

import shutil
import subprocess

import pytest

from tests.mutants.__main__ import BY_TESTS, BY_TORTURE, IN_LOCKSTEP, PATCHES, REPOSITORY


@pytest.mark.skipif(shutil.which("git") is None, reason="git applies the patches")
def test_every_patch_applies() -> None:
    patches = sorted(PATCHES.glob("*.patch"))
    assert len(patches) >= 30
    for patch in patches:
        done = subprocess.run(
            ["git", "apply", "--check", str(patch)], cwd=REPOSITORY, capture_output=True, text=True, check=False
        )
        assert done.returncode == 0, f"{patch.name}: {done.stderr}"


def test_those_that_are_judged_in_another_way_exist() -> None:
    assert {f"{name}.patch" for name in BY_TORTURE | IN_LOCKSTEP | BY_TESTS.keys()} <= {
        path.name for path in PATCHES.iterdir()
    }
