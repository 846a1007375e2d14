"""Codecs in a real worker: handlers in child processes, and keys that only some workers have."""

from __future__ import annotations

from collections.abc import Iterator

import msgspec
import pytest
from cryptography.fernet import Fernet

from relet import App, State
from relet._core.codecs import codec_of, note_of
from relet._worker import processes
from relet._worker.child_messages import Command, Reply
from relet.codecs import FernetCodec
from tests.worker import codec_tasks
from tests.worker.working import error_of, working

MARKER = "canary-7f3a"


def app_with(key: str) -> App:
    app = App("sqlite:///:memory:", codecs=[FernetCodec(key)])
    app.task(process=True, max_attempts=1)(codec_tasks.repeat.__wrapped__)
    return app


@pytest.mark.long
def test_values_are_encoded_on_their_way_to_and_from_a_child(monkeypatch: pytest.MonkeyPatch) -> None:
    sent: list[msgspec.Struct] = []
    received: list[Reply] = []
    send, lines = processes.ChildProcess._send, processes.ChildProcess._lines

    def noting_send(child: processes.ChildProcess, message: msgspec.Struct) -> None:
        sent.append(message)
        send(child, message)

    def noting_lines(child: processes.ChildProcess) -> Iterator[bytes]:
        for line in lines(child):
            received.append(msgspec.json.decode(line, type=Reply))
            yield line

    monkeypatch.setattr(processes.ChildProcess, "_send", noting_send)
    monkeypatch.setattr(processes.ChildProcess, "_lines", noting_lines)
    with app_with(codec_tasks.KEY) as app:
        with working(app, concurrency=1):
            job = app.lookup("repeat").enqueue(MARKER)
            assert app.client.result(job, timeout=20) == {"text": MARKER, "payload": {"text": MARKER}}
        found = app.client.get(job)
        assert found is not None
        assert (codec_of(found.payload_json), codec_of(found.result_json or "")) == ("fernet", "fernet")
        (command,) = [one.job for one in sent if isinstance(one, Command) and one.job is not None]
        assert codec_of(command.payload_json) == "fernet"
        (progress,) = [one.progress for one in received if one.progress is not None]
        assert note_of(progress.note or "", app.codecs) == MARKER
        assert MARKER not in str([sent, received])


@pytest.mark.long
def test_a_child_without_the_key_fails_the_job_and_serves_the_next() -> None:
    with app_with(Fernet.generate_key().decode()) as app:
        job = app.lookup("repeat").enqueue(MARKER)
        with working(app, concurrency=1):
            assert "codec 'fernet' cannot decode the payload of job" in error_of(app, job)
            again = app.lookup("repeat").enqueue(MARKER)
            assert "its key does not decrypt it" in error_of(app, again)
        assert app.client.get(job).state is State.FAILED  # type: ignore[union-attr]
