"""Tasks with a codec for child processes, which find them, and their app, here."""

from __future__ import annotations

from typing import Any

from relet import App, Attempt
from relet.codecs import FernetCodec

KEY = "A" * 43 + "="

app = App("sqlite:///:memory:", codecs=[FernetCodec(KEY)])


@app.task(process=True)
def repeat(attempt: Attempt, text: str) -> dict[str, Any]:
    attempt.progress(1, note=text)
    return {"text": text, "payload": attempt.job.payload}
