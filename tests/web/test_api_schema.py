"""The API is what its OpenAPI document says: schemathesis asks whatever the document allows, and much that it does not.

All of its checks are on, in all of its phases: boundaries of every parameter, random requests, and sequences of them.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator
from itertools import count
from typing import Any

import pytest

from tests.plugin.selection import rounds

pytest.importorskip("starlette")
pytest.importorskip("schemathesis")

import schemathesis
from hypothesis import strategies as st
from schemathesis.engine import events, from_schema

from relet import App, new_id
from relet._web import create_app
from relet._web.security import Failures
from tests.conftest import PG_KINDS
from tests.databases import Database, shared_schema
from tests.harness import harness_of

TOKEN = "the-token-of-this-test-0123456789"

# What a document cannot say: which fields go together, and what a task takes. There, 422 is a fair answer to what fits.
SAYS_MORE = [
    "enqueue", "put_schedule", "complete_job", "delete_job", "bulk", "limit_queue", "limit_all_queues", "signal_job",
    "rerun_job", "list_jobs", "count_jobs",
]  # fmt: skip
SAME_BODIES = ["enqueue_many", "complete_chain"]
FAIR = ["2xx", "404", "409", "422"]

_printable = st.characters(exclude_categories=["C", "Z"], include_characters=" ")
_crons = ["* * * * *", "*/5 2 * * *", "0 3 1 * mon", "@daily", "5 4 L * *"]
# Among them those at the bounds of their lengths: those are asked for, and chance would not find them.
FORMATS = {
    "printable": st.text(_printable, min_size=1, max_size=20) | st.sampled_from(["x" * 511, "x" * 512, "/", ".."]),
    "cron": st.sampled_from([*_crons, *("0 3 * * *".replace(" ", " " * more, 1) for more in (247, 248))]),
    "time-zone": st.sampled_from(["UTC", "Europe/Berlin", "America/Argentina/Buenos_Aires", "Etc/GMT+3"]),
}
for name, strategy in FORMATS.items():
    schemathesis.openapi.format(name, strategy)


@schemathesis.hook
def before_call(context: Any, case: Any, kwargs: Any) -> None:
    """A key belongs to one request: those that are made up must differ, or all but the first are rightly refused."""
    key = (case.headers or {}).get("Idempotency-Key")
    if isinstance(key, str) and 1 <= len(key) <= 512 and key.isprintable():
        case.headers["Idempotency-Key"] = new_id()


@pytest.fixture(scope="module", params=["sqlite", *PG_KINDS])
def app(request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory) -> Iterator[App]:
    if request.param == "sqlite":
        yield from filled(App(f"sqlite:///{tmp_path_factory.mktemp('api')}/jobs.db"))
    else:
        for database in shared_schema(request):
            yield from filled(Database.app(database))


def filled(app: App) -> Iterator[App]:
    """A few jobs in every state."""

    @app.task(max_attempts=1)
    def note(text: str = "", *, number: int = 0, data: Any = None) -> Any: ...

    @app.task(queue="a/b")
    def total(*numbers: int, **names: str) -> int:
        return sum(numbers)

    app._store().ready()
    jobs = [note.using(target=f"acct-{n % 2}", group="k").enqueue("ä", number=n) for n in range(4)]
    total.using(depends_on=[jobs[0]], unique="one").enqueue(1, 2, a="b")
    harness_of(app).promote_all()
    for claimed in harness_of(app).claim(2):
        harness_of(app).fail(claimed, "ValueError: account 7 has only 7.50 left")
    app.client.schedules.put("nightly", note.draft(), "0 3 * * *")
    app.client.schedules.run_now("nightly")
    yield app
    app.close()


def config(*, coverage: bool) -> schemathesis.Config:
    fair = {"positive_data_acceptance": {"expected-statuses": FAIR}}
    refused = {"negative_data_rejection": {"expected-statuses": ["400", "401", "404", "405", "413", "415", "422"]}}
    return schemathesis.Config.from_dict(
        {
            "seed": 20260301,
            "headers": {"Authorization": f"Bearer {TOKEN}"},
            "generation": {"max-examples": rounds(2, all=4), "deterministic": True, "database": "none"},
            "checks": refused,
            "operations": [
                {"include-operation-id": SAYS_MORE, "checks": fair | refused},
                {
                    "include-operation-id": SAME_BODIES,
                    "phases": {"coverage": {"enabled": False}},
                    "checks": fair | refused,
                },
            ],
            "phases": {
                "coverage": {"enabled": coverage},
                "stateful": {"max-steps": 6, "generation": {"max-examples": rounds(2, all=3)}},
            },
        }
    )


@pytest.mark.long("sqlite")
@pytest.mark.timeout(300)
def test_schemathesis_finds_nothing(app: App) -> None:
    web = create_app(app, operate={"schemathesis": TOKEN}, hosts=["testserver"])
    web._failures = Failures(count(step=3600).__next__)  # wrong tokens are tried, too: each is the first in an hour
    token = {"Authorization": f"Bearer {TOKEN}"}
    on_sqlite = app._store().where.startswith("sqlite")  # bounds are checked before any store is asked: once is enough
    settings = config(coverage=on_sqlite)
    schema = schemathesis.openapi.from_asgi("/api/openapi.json", web, config=settings, headers=token)
    found: list[str] = []
    answers: Counter[int] = Counter()
    for event in from_schema(schema).execute():
        match event:
            case events.ScenarioFinished(recorder=recorder):
                statuses = [
                    one.response.status_code for one in recorder.interactions.values() if one.response is not None
                ]
                answers.update(statuses)
                for checks in recorder.checks.values():
                    failures = [check.failure_info for check in checks if check.failure_info is not None]
                    found += [f"{recorder.label}: {one.failure}\n{one.code_sample}" for one in failures]
            case events.NonFatalError(label=label, info=info):
                found.append(f"{label}: {info}")
            case events.FatalError(exception=error):
                raise error
    assert found == [], "\n\n".join(found)
    assert answers[200] + answers[201] + answers[204] > 50, f"hardly anything was let in: {answers}"
    assert answers[422] > 20, f"hardly anything was refused: {answers}"
