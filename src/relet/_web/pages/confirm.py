"""What will happen, said before it does. Each action has a question here, and its deed in `actions`."""

from __future__ import annotations

import inspect
import json
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from typing import Any

from ..._core.job import Job, State
from ..._core.schedule import ScheduleInfo
from ..._core.verbs import BULK, Verb
from ...errors import InvalidInput
from . import filters
from .context import NotThere, Page, View
from .formatting import capped, clock, many, number, one_line
from .job import get
from .queues import limits

MOST_AT_ONCE = 10_000  # jobs that one bulk action changes
MOST_SELECTED = 200


def bulk_verb(name: str) -> Verb:
    """A verb for many jobs, by its name, or NotThere."""
    if name not in BULK:
        raise NotThere(f"There is no action {one_line(name, 40)} for many jobs.")
    return BULK[name]


@dataclass(frozen=True)
class Question:
    """A confirmation: what will happen, and what goes with the answer."""

    title: str
    says: list[str]
    button: str
    danger: bool = False
    fields: Mapping[str, list[str]] = field(default_factory=dict)
    form: str = ""  # which further fields there are to fill in
    extra: Mapping[str, Any] = field(default_factory=dict)


def confirm(view: View, action: str) -> Page:
    """The page that asks before an action."""
    if not view.may_act:
        said = {"said": "You may read, not act.", "advice": "Come in with a token of the role operate."}
        return Page("Not allowed", "problem.html", said, status=403, live=False)
    if action not in QUESTIONS:
        raise NotThere(f"There is no action {action}.")
    question = QUESTIONS[action](view)
    context = {"question": question, "action": action, "back": local(view.query.get("back", ""))}
    return Page(question.title, "confirm.html", context, live=False)


def local(back: str) -> str:
    """Where to go afterwards: a page of ours, below the root; the overview for anything else."""
    fine = back.startswith("/") and not back.startswith("//") and "\\" not in back and back.isprintable()
    return back if fine else "/"


def _job(view: View) -> Job[Any]:
    return get(view, view.query.get("job", ""))


def _named(job: Job[Any]) -> str:
    return f"{job.task} {job.id[-8:]}"


def _standing(job: Job[Any]) -> str:
    """Where a job is now, in words."""
    match job.state:
        case State.RUNNING:
            return f"It is running at worker {one_line(job.worker, 60)}"
        case State.FAILED:
            return f"It has failed after {many(job.attempt, 'attempt')}"
        case State.PENDING:
            return f"It is pending, due {clock(job.run_at)}"
    return f"It is {job.state}"


def _fields(view: View, *names: str) -> dict[str, list[str]]:
    return {name: [view.query[name]] for name in names if name in view.query}


def _cancel(view: View) -> Question:
    job = _job(view)
    whole = bool(view.query.get("chain"))
    then = {
        State.RUNNING: "its handler is asked to stop, and the job ends cancelled as soon as it has",
    }.get(job.state, "it will not run any more, and ends cancelled")
    says = [f"{_standing(job)}: {then}.", "It cannot be resumed."]
    if whole:
        says.insert(0, "Of its chain, the job that is not over yet is cancelled; that ends the chain.")
    if job.holds:
        says.append(f"It holds target {one_line(job.target, 80)}, which goes to the next in line.")
    return Question(f"Cancel {_named(job)}?", says, "Cancel the job", True, _fields(view, "job", "chain"))


def _pause(view: View) -> Question:
    job = _job(view)
    then = "its handler is asked to stop, and the job is paused as soon as it has" if job.state is State.RUNNING else (
        "it is held back")  # fmt: skip
    says = [f"{_standing(job)}: {then}. It stays paused until somebody resumes it."]
    if job.target:
        says.append(f"While it is paused, jobs behind it at target {one_line(job.target, 80)} wait.")
    return Question(f"Pause {_named(job)}?", says, "Pause the job", False, _fields(view, "job"))


def _resume(view: View) -> Question:
    job = _job(view)
    says = [
        f"{_standing(job)}: it goes on, with {many(job.max_attempts, 'attempt')} anew, as soon as nothing holds it up."
    ]
    if job.state is State.FAILED and job.error:
        says.append(f"Its last error was: {one_line(job.error, 200)}")
    return Question(f"Resume {_named(job)}?", says, "Resume the job", False, _fields(view, "job"))


def _run_now(view: View) -> Question:
    job = _job(view)
    says = [f"{_standing(job)}: it is due at once, and runs as soon as a worker has a slot for it."]
    return Question(f"Run {_named(job)} now?", says, "Run it now", False, _fields(view, "job"))


def _complete(view: View) -> Question:
    job = _job(view)
    says = [f"{_standing(job)}: it ends succeeded, with the result below, without being run any further."]
    if job.state is State.RUNNING:
        says.append("Its handler is told so, and nothing that it returns is recorded.")
    says.append("Jobs that wait for it go on.")
    return Question(f"Complete {_named(job)}?", says, "Complete the job", False, _fields(view, "job"), "complete")


def _delete(view: View) -> Question:
    job = _job(view)
    says = [f"{_standing(job)}: the job and its history are removed for good."]
    if job.state is State.RUNNING:
        says.append("Its handler is told to stop, and nothing that it returns is recorded.")
    if job.holds:
        says.append(f"It holds target {one_line(job.target, 80)}, which goes to the next in line.")
    return Question(f"Delete {_named(job)}?", says, "Delete", True, _fields(view, "job"), "delete")


def _bulk(view: View) -> Question:
    verb = bulk_verb(view.query.get("action", ""))
    chosen = list(view.several.get("job") or ([view.query["job"]] if "job" in view.query else []))[:MOST_SELECTED]
    if chosen:
        fields: dict[str, list[str]] = {"action": [verb.name], "job": chosen}
        what_of = f"{verb.label} {many(len(chosen), 'job')}"
        return Question(f"{what_of}?", [verb.note, LEFT_ALONE], what_of, verb.destroys, fields)
    given = filters.given(view.query)
    if not given:
        raise InvalidInput("no job is selected: choose some, or filter the list first")
    total = view.client.count(**filters.arguments(given), most=MOST_AT_ONCE + 1)
    says = [f"All {filters.in_words(given)}: {capped(total)} just now. {verb.note}", LEFT_ALONE]
    if total > MOST_AT_ONCE:
        says.append(f"The first {number(MOST_AT_ONCE)} are done now; do it again for the rest.")
    fields = {"action": [verb.name], **{name: [value] for name, value in given.items()}}
    what_of = f"{verb.label} {capped(total)} {'job' if total == 1 else 'jobs'}"
    return Question(f"{what_of}?", says, what_of, verb.destroys, fields)


LEFT_ALONE = "Those whose state does not allow it by then are left alone."


def _queue(view: View) -> str:
    queue = view.query.get("queue", "")
    if not queue:
        raise InvalidInput("no queue is named")
    return queue


def _pause_queue(view: View) -> Question:
    queue = _queue(view)
    says = [f"No worker claims from queue {queue} until it is resumed. What runs goes on; what is enqueued waits."]
    return Question(f"Pause queue {queue}?", says, "Pause the queue", False, {"queue": [queue]})


def _resume_queue(view: View) -> Question:
    queue = _queue(view)
    says = [f"Workers claim from queue {queue} again, at once."]
    return Question(f"Resume queue {queue}?", says, "Resume the queue", False, {"queue": [queue]})


def _limit_queue(view: View) -> Question:
    queue = _queue(view)
    info = next((one for one in view.client.queues() if one.queue == queue), None)
    said = limits(info) if info else []
    whose = "All queues together are" if queue == "*" else f"Queue {queue} is"
    says = [
        f"{whose} limited so from now on; an empty field lifts a limit. What runs goes on, also beyond a new limit.",
        f"Now: {', '.join(said) if said else 'no limits'}.",
    ]
    rate = next((one for one in info.rates if one.key is None), None) if info else None
    extra = {"info": info, "rate": rate, "all": queue == "*"}
    title = "Limit all queues together" if queue == "*" else f"Limit queue {queue}"
    return Question(title, says, "Set the limits", False, {"queue": [queue]}, "limits", extra)


def _schedule(view: View) -> ScheduleInfo:
    name = view.query.get("name", "")
    found = view.client.schedules.get(name) if name else None
    if found is None:
        raise NotThere(f"There is no schedule named {name}.")
    return found


def _of_schedule(
    title: str, says: Callable[[ScheduleInfo], list[str]], button: str, danger: bool = False
) -> Callable[[View], Question]:
    def ask(view: View) -> Question:
        found = _schedule(view)
        name = one_line(found.name, 80)
        return Question(title.format(name), says(found), button, danger, {"name": [found.name]})

    return ask


def _schedule_paused(_: ScheduleInfo) -> list[str]:
    return ["It does not tick until it is resumed. Jobs that it has enqueued go on."]


def _schedule_resumed(_: ScheduleInfo) -> list[str]:
    return ["It ticks again, from the next tick on. Ticks of the pause are not made up for."]


def _schedule_run(found: ScheduleInfo) -> list[str]:
    return [f"A job of task {one_line(found.task, 80)} is enqueued now, beside the ticks, which stay as they are."]


def _schedule_removed(found: ScheduleInfo) -> list[str]:
    says = ["It ticks no more, and its history of ticks is removed. Jobs that it has enqueued stay."]
    if found.declared:
        says.append("Code declares it: it comes back when a worker starts that still has it.")
    return says


def _enqueue(view: View) -> Question:
    name = view.query.get("task", "")
    task = view.tasks.get(name)
    says = ["A job is put into the line of its queue, and runs as soon as a worker has a slot for it."]
    extra: dict[str, Any] = {"task": name if task else "", "names": sorted(view.tasks), "given": view.query}
    if task is None:
        says = ["Which task? Its arguments are asked for next."]
        return Question("Enqueue a job", says, "Go on", False, {}, "choose", extra)
    parameters = list(inspect.signature(task.__wrapped__).parameters.values())[task.signature.takes_attempt :]
    example = {one.name: None if one.default is one.empty else one.default for one in parameters}
    extra["payload"] = view.query.get("payload") or json.dumps(example, indent=2, default=str)
    extra["signature"] = ", ".join(map(_written, parameters))
    extra["queue"] = task.queue
    return Question(f"Enqueue {name}", says, "Enqueue", False, {"task": [name]}, "enqueue", extra)


def _written(one: inspect.Parameter) -> str:
    """A parameter as it stands in the code: an annotation that was kept as text is not put into quotes."""
    return str(one).replace(repr(one.annotation), one.annotation, 1) if isinstance(one.annotation, str) else str(one)


QUESTIONS: dict[str, Callable[[View], Question]] = {
    "cancel": _cancel,
    "pause": _pause,
    "resume": _resume,
    "run-now": _run_now,
    "complete": _complete,
    "delete": _delete,
    "bulk": _bulk,
    "enqueue": _enqueue,
    "pause-queue": _pause_queue,
    "resume-queue": _resume_queue,
    "limit-queue": _limit_queue,
    "pause-schedule": _of_schedule("Pause schedule {}?", _schedule_paused, "Pause it"),
    "resume-schedule": _of_schedule("Resume schedule {}?", _schedule_resumed, "Resume it"),
    "run-schedule": _of_schedule("Run schedule {} now?", _schedule_run, "Run it now"),
    "remove-schedule": _of_schedule("Remove schedule {}?", _schedule_removed, "Remove it", True),
}
