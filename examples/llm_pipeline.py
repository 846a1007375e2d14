"""An LLM pipeline: each call of the model is a durable step, and a person approves the answer before it is sent.

    python llm_pipeline.py                                        # SQLite, in this directory
    RELET_URL=postgresql://localhost/shop python llm_pipeline.py  # PostgreSQL

The model is a stand-in that needs no network and no key. Replace `LocalModel` by the client of your provider.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

from relet import App, Attempt, Backoff, Fail, Job, injected
from relet.errors import SignalTimeout

app = App()
THREE_DAYS = 3 * 86_400.0
calls: list[str] = []  # the questions to the model, and the mail that was sent: to show that no call is repeated


class LocalModel:
    """Stands for a model. It answers by rules, and its third call fails, as a busy provider would."""

    def complete(self, prompt: str) -> str:
        calls.append(prompt)
        if len(calls) == 3:
            raise ConnectionError("the model is overloaded")
        if prompt.startswith("Classify"):
            return "refund" if "money back" in prompt else "question"
        return (
            "We refund you in full." if "shorter" in prompt else "We are sorry, and after a review we will refund you."
        )


@app.resource
def model() -> Iterator[LocalModel]:
    """Made once in each worker process. In tests, `Harness.override` replaces it."""
    yield LocalModel()


@dataclass
class Review:
    approved: bool
    comment: str = ""


def send(to: str, text: str) -> str:
    return f"to {to}: {text}"


@app.task(queue="answers", max_attempts=10, backoff=Backoff(base=0.1, max=60))
def answer(attempt: Attempt, customer: str, message: str, model: LocalModel = injected) -> str:
    """The job sleeps while it waits for a person. A later attempt takes finished steps from the store."""
    kind = attempt.step("classify", model.complete, f"Classify: {message}")
    wish = ""
    for number in range(1, 4):
        text = attempt.step(f"draft {number}", model.complete, f"Answer this {kind}: {message}{wish}")
        try:
            review = attempt.wait_for(f"review {number}", Review, timeout=THREE_DAYS)
        except SignalTimeout:
            raise Fail("no review within three days") from None
        if review.approved:
            return attempt.step("send", send, customer, text)
        wish = f"\nThe reviewer wants: {review.comment}"
    raise Fail("three drafts were refused")


def review(job: Job[str], number: int, review: Review) -> None:
    """The action of a button on your page. The dashboard has one on the page of the job, too."""
    _ = app.client.signal(job, f"review {number}", review)


def main() -> None:
    app.client.migrate()
    job = answer.enqueue("ada@example.org", "The lamp is broken. I want my money back.")
    with app.worker(poll_interval=0.2):
        review(job, 1, Review(approved=False, comment="make it shorter"))  # a signal may come early
        review(job, 2, Review(approved=True))
        print(app.client.result(job, timeout=60))
    print(f"calls of the model: {len(calls)}, of which one failed")
    print("stored steps:", ", ".join(step.name for step in app.client.steps(job)))


if __name__ == "__main__":
    main()
