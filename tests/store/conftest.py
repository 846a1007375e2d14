"""Stores that tests share: emptied before each of them, which is much quicker than a new one."""

from __future__ import annotations

from collections.abc import Iterator

import pytest

from tests.conftest import PG_KINDS, SQLITE_KINDS
from tests.store.subjects import Subject, subjects_of
from tests.store.world import World


@pytest.fixture(scope="module", params=[*SQLITE_KINDS, *PG_KINDS])
def shared(request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Subject]:
    names = [] if request.param in SQLITE_KINDS else [request.param]
    with subjects_of(request.config, tmp_path_factory.mktemp("shared"), names) as found:
        yield next(subject for subject in found if subject.name == request.param)


@pytest.fixture
def world(shared: Subject) -> World:
    shared.wipe()
    return World(shared)
