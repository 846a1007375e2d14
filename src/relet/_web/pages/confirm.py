"""Confirmation pages: they describe the effect of an action before `actions` performs it."""

from __future__ import annotations

import inspect
import json
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from typing import Any

from ..._client.rerun import check_stored
from ..._core.ids import parse_id
from ..._core.job import Job, State
from ..._core.redact import HIDDEN
from ..._core.schedule import ScheduleInfo
from ..._core.verbs import BULK, VERBS, Verb
from ..._core.views import QueueInfo
from ..._tasks.task import Task
from ...errors import InvalidInput
from . import filters
from .formatting import capped, clock, json_source, many, number, visible_line
from .page import Page, PageContext, PageNotFound, local_path, problem
from .queues import limits, totals
from .rerun import editable_arguments, encoded_with

MAX_BULK = 10_000  # jobs that one bulk action changes
SCAN = 20_000  # jobs of each table that are read to say how many match
MAX_SELECTED = 200
MAX_GROUP_FIELDS = 50


def bulk_verb(name: str) -> Verb:
    """A bulk verb by its name. Raises PageNotFound if there is none."""
    if name not in BULK:
        raise PageNotFound(f"There is no bulk action {visible_line(name, 40)}.")
    return BULK[name]


@dataclass(frozen=True)
class Confirmation:
    """A confirmation page: its text, and the fields that its form submits."""

    title: str
    sentences: list[str]
    button: str
    danger: bool = False
    fields: Mapping[str, list[str]] = field(default_factory=dict)
    form: str = ""  # which additional fields confirm.html displays
    extra: Mapping[str, Any] = field(default_factory=dict)


def confirm(view: PageContext, action: str) -> Page:
    """The confirmation page of an action."""
    if not view.may_act:
        advice = "Sign in with an operator token to make changes."
        return problem("Not allowed", "Your token is read-only.", 403, advice)
    if action not in CONFIRMATIONS:
        raise PageNotFound(f"There is no action {action}.")
    confirmation = CONFIRMATIONS[action](view)
    context = {"confirmation": confirmation, "action": action, "back": local_path(view.query.get("back", ""))}
    return Page(confirmation.title, "confirm.html", context, live=False)


def _job(view: PageContext) -> Job[Any]:
    id = view.query.get("job", "")
    try:
        found = view.client.get(parse_id(id))
    except InvalidInput as error:
        raise PageNotFound(f"Invalid job id: {error}.") from None
    if found is None:
        raise PageNotFound(f"There is no job {id}.")
    return found


def _short_name(job: Job[Any]) -> str:
    return f"{job.task} {job.id[-8:]}"


def _current_state(job: Job[Any]) -> str:
    """A clause that describes the state of a job."""
    match job.state:
        case State.RUNNING:
            return f"It is running at worker {visible_line(job.worker, 60)}"
        case State.FAILED:
            return f"It has failed after {many(job.attempt, 'attempt')}"
        case State.PENDING:
            return f"It is pending, due {clock(job.run_at)}"
    return f"It is {job.state}"


def _fields(view: PageContext, *names: str) -> dict[str, list[str]]:
    return {name: [view.query[name]] for name in names if name in view.query}


def _confirmation_of(verb: Verb) -> Callable[[PageContext], Confirmation]:
    """The confirmation of a verb whose effect is the same in all states."""

    def ask(view: PageContext) -> Confirmation:
        job = _job(view)
        title, sentences = f"{verb.label}: {_short_name(job)}?", [f"{_current_state(job)}.", verb.note]
        return Confirmation(title, sentences, verb.label, verb.destroys, _fields(view, "job"))

    return ask


def _cancel(view: PageContext) -> Confirmation:
    job = _job(view)
    whole = bool(view.query.get("chain"))
    then = {
        State.RUNNING: "its handler is asked to stop, and the job is cancelled as soon as it has stopped",
    }.get(job.state, "it will not run any more, and is cancelled")
    sentences = [f"{_current_state(job)}: {then}.", "It cannot be resumed."]
    if whole:
        sentences.insert(0, "This cancels the job of the chain that is not over yet, which ends the chain.")
    if job.holds:
        sentences.append(f"It holds target {visible_line(job.target, 80)}, which passes to the next job in line.")
    return Confirmation(f"Cancel {_short_name(job)}?", sentences, "Cancel the job", True, _fields(view, "job", "chain"))


def _pause(view: PageContext) -> Confirmation:
    job = _job(view)
    then = {
        State.RUNNING: "its handler is asked to stop, and the job is paused as soon as it has stopped",
    }.get(job.state, "it will not start")
    sentences = [f"{_current_state(job)}: {then}. It stays paused until it is resumed."]
    if job.target:
        sentences.append(f"While it is paused, the jobs behind it at target {visible_line(job.target, 80)} wait.")
    return Confirmation(f"Pause {_short_name(job)}?", sentences, "Pause the job", False, _fields(view, "job"))


def _resume(view: PageContext) -> Confirmation:
    job = _job(view)
    sentences = [
        f"{_current_state(job)}. It runs again as soon as nothing blocks it,"
        f" with {many(job.max_attempts, 'new attempt')}."
    ]
    if job.state is State.FAILED and job.error:
        sentences.append(f"Its last error was: {visible_line(job.error, 200)}")
    return Confirmation(f"Resume {_short_name(job)}?", sentences, "Resume the job", False, _fields(view, "job"))


def _complete(view: PageContext) -> Confirmation:
    job = _job(view)
    sentences = [f"{_current_state(job)}: it ends as succeeded, with the result below, and does not run again."]
    if job.state is State.RUNNING:
        sentences.append("Its handler is asked to stop, and its return value is discarded.")
    sentences.append("Jobs that wait for it can start.")
    return Confirmation(
        f"Complete {_short_name(job)}?", sentences, "Complete the job", False, _fields(view, "job"), "complete"
    )


def _signal(view: PageContext) -> Confirmation:
    job = _job(view)
    name = view.query.get("name") or job.awaits or ""
    sentences = [f"{_current_state(job)}: it runs again as soon as it receives the signal for which it waits."]
    if job.awaits is None:
        kept = "The signal is kept until its handler waits for it."
        sentences = [f"{_current_state(job)}, and waits for no signal. {kept}"]
    sentences.append("The first signal of a name counts: it cannot be changed later.")
    extra = {"name": name, "value": view.query.get("value", "null")}
    title = f"Send a signal to {_short_name(job)}"
    return Confirmation(title, sentences, "Send the signal", False, {"job": [job.id]}, "signal", extra)


def _delete(view: PageContext) -> Confirmation:
    job = _job(view)
    sentences = [f"{_current_state(job)}: the job and its history are permanently deleted."]
    if job.state is State.RUNNING:
        sentences.append("Its handler is asked to stop, and its return value is discarded.")
    if job.holds:
        sentences.append(f"It holds target {visible_line(job.target, 80)}, which passes to the next job in line.")
    return Confirmation(f"Delete {_short_name(job)}?", sentences, "Delete", True, _fields(view, "job"), "delete")


def _rerun(view: PageContext) -> Confirmation:
    job = _job(view)
    check_stored(job)
    arguments = editable_arguments(job, view.redact)
    title, sentences, fields = f"Run {_short_name(job)} again?", _rerun_effect(job, arguments), _fields(view, "job")
    if arguments is None:
        return Confirmation(title, sentences, "Run again", False, fields)
    task = view.tasks.get(job.task)
    extra = {
        "label": "Arguments to replace, as a JSON object" if encoded_with(job) else "Arguments, as a JSON object",
        "arguments": view.query.get("arguments", json_source(arguments)),
        "signature": "" if task is None else _signature(task),
    }
    return Confirmation(title, sentences, "Run again", False, fields, "rerun", extra)


def _rerun_effect(job: Job[Any], arguments: dict[str, Any] | None) -> list[str]:
    sentences = [
        "A new job is enqueued, with the queue, priority, target, group and tags of this one. This job stays as it is."
    ]
    codec = encoded_with(job)
    if job.holds:
        sentences.append(f"The new job waits for target {visible_line(job.target, 80)}, which this job holds.")
    if arguments is None:
        sentences.append("The new job has the same arguments: they are too long to edit here, or no JSON object.")
    elif codec is not None:
        sentences.append(f"The arguments are encoded with {codec} and not displayed. Those that you do not name stay.")
    elif HIDDEN in json.dumps(arguments):
        sentences.append(f"{HIDDEN} stands for a value that is not displayed. It stays unless you replace it.")
    return sentences


def _bulk(view: PageContext) -> Confirmation:
    verb = bulk_verb(view.query.get("action", ""))
    chosen = list(view.query_lists.get("job") or ([view.query["job"]] if "job" in view.query else []))[:MAX_SELECTED]
    if chosen:
        fields: dict[str, list[str]] = {"action": [verb.name], "job": chosen}
        summary = f"{verb.label} {many(len(chosen), 'job')}"
        return Confirmation(f"{summary}?", [verb.note, LEFT_ALONE], summary, verb.destroys, fields)
    criteria = filters.from_query(view.query)
    if not criteria:
        raise InvalidInput("No job is selected. Select some, or filter the list first.")
    total = view.client.count(**filters.arguments(criteria), limit=MAX_BULK + 1, scan=SCAN)
    has_more = total <= MAX_BULK and sum(totals(view.client.queues()).values()) > SCAN
    where = f"among the newest {number(SCAN)} jobs, and all older ones that match" if has_more else "just now"
    sentences = [f"All {filters.in_words(criteria)}: {capped(total)} {where}. {verb.note}", LEFT_ALONE]
    if total > MAX_BULK:
        sentences.append(f"Only the first {number(MAX_BULK)} are changed now. Repeat the action for the rest.")
    fields = {"action": [verb.name], **{name: [value] for name, value in criteria.items()}}
    number_of = (
        "all jobs that match" if has_more else many(total, "job") if total <= MAX_BULK else f"{capped(total)} jobs"
    )
    summary = f"{verb.label} {number_of}"
    return Confirmation(f"{summary}?", sentences, summary, verb.destroys, fields)


LEFT_ALONE = "Jobs whose state no longer allows this are left alone."


def _queue(view: PageContext) -> str:
    queue = view.query.get("queue", "")
    if not queue:
        raise InvalidInput("The URL names no queue.")
    return queue


def _pause_queue(view: PageContext) -> Confirmation:
    queue = _queue(view)
    sentences = [f"No worker claims from queue {queue} until it is resumed. Running jobs continue; new jobs wait."]
    return Confirmation(f"Pause queue {queue}?", sentences, "Pause the queue", False, {"queue": [queue]})


def _resume_queue(view: PageContext) -> Confirmation:
    queue = _queue(view)
    sentences = [f"Workers claim from queue {queue} again, at once."]
    return Confirmation(f"Resume queue {queue}?", sentences, "Resume the queue", False, {"queue": [queue]})


def _limit_queue(view: PageContext) -> Confirmation:
    queue = _queue(view)
    info = next((one for one in view.client.queues() if one.queue == queue), None)
    current = limits(info) if info else []
    whose = "all queues together" if queue == "*" else f"queue {queue}"
    sentences = [
        f"Sets the limits of {whose}; an empty field lifts a limit. Running jobs continue, even beyond a new limit.",
        f"Now: {', '.join(current) if current else 'no limits'}.",
    ]
    rate = next((one for one in info.rates if one.group is None), None) if info else None
    extra = {"info": info, "rate": rate, "all": queue == "*", **_group_limits(info)}
    title = "Limit all queues together" if queue == "*" else f"Limit queue {queue}"
    return Confirmation(title, sentences, "Set the limits", False, {"queue": [queue]}, "limits", extra)


def _group_limits(info: QueueInfo | None) -> dict[str, Any]:
    """The limits by group that the form contains, and the number of the others."""
    found = info.group_limits if info else ()
    return {"group_limits": found[:MAX_GROUP_FIELDS], "group_limits_left": max(len(found) - MAX_GROUP_FIELDS, 0)}


def _schedule(view: PageContext) -> ScheduleInfo:
    name = view.query.get("name", "")
    found = view.client.schedules.get(name) if name else None
    if found is None:
        raise PageNotFound(f"There is no schedule named {name}.")
    return found


def _of_schedule(
    title: str, sentences: Callable[[ScheduleInfo], list[str]], button: str, danger: bool = False
) -> Callable[[PageContext], Confirmation]:
    def ask(view: PageContext) -> Confirmation:
        found = _schedule(view)
        name = visible_line(found.name, 80)
        return Confirmation(title.format(name), sentences(found), button, danger, {"name": [found.name]})

    return ask


def _schedule_paused(_: ScheduleInfo) -> list[str]:
    return ["It does not tick until it is resumed. Jobs that it has enqueued are not affected."]


def _schedule_resumed(_: ScheduleInfo) -> list[str]:
    return ["It ticks again, from the next tick on. Ticks missed during the pause are not made up for."]


def _schedule_run(found: ScheduleInfo) -> list[str]:
    return [f"A job of task {visible_line(found.task, 80)} is enqueued now. The regular ticks stay unchanged."]


def _schedule_removed(found: ScheduleInfo) -> list[str]:
    sentences = ["It stops ticking, and its history of ticks is deleted. Jobs that it has enqueued stay."]
    if found.declared:
        sentences.append("It is declared in code: it is added again when a worker starts whose code still declares it.")
    return sentences


def _enqueue(view: PageContext) -> Confirmation:
    name = view.query.get("task", "")
    task = view.tasks.get(name)
    sentences = ["The job joins its queue, and runs as soon as a worker has a free slot."]
    extra: dict[str, Any] = {"task": name if task else "", "names": sorted(view.tasks), "typed": view.query}
    if task is None:
        sentences = ["Which task? The next step asks for its arguments."]
        return Confirmation("Enqueue a job", sentences, "Continue", False, {}, "choose", extra)
    example = {one.name: None if one.default is one.empty else one.default for one in _parameters(task)}
    extra["payload"] = view.query.get("payload") or json.dumps(example, indent=2, default=str)
    extra["signature"] = _signature(task)
    extra["queue"] = task.queue
    return Confirmation(f"Enqueue {name}", sentences, "Enqueue", False, {"task": [name]}, "enqueue", extra)


def _parameters(task: Task[..., Any]) -> list[inspect.Parameter]:
    return list(inspect.signature(task.__wrapped__).parameters.values())[task.signature.takes_attempt :]


def _signature(task: Task[..., Any]) -> str:
    return f"{task.name}({', '.join(map(_written, _parameters(task)))})"


def _written(one: inspect.Parameter) -> str:
    """A parameter as written in the code: str() would put annotations that are stored as text into quotes."""
    return str(one).replace(repr(one.annotation), one.annotation, 1) if isinstance(one.annotation, str) else str(one)


CONFIRMATIONS: dict[str, Callable[[PageContext], Confirmation]] = {
    **{verb.word: _confirmation_of(verb) for verb in VERBS.values()},
    "cancel": _cancel,
    "pause": _pause,
    "resume": _resume,
    "complete": _complete,
    "signal": _signal,
    "delete": _delete,
    "bulk": _bulk,
    "enqueue": _enqueue,
    "rerun": _rerun,
    "pause-queue": _pause_queue,
    "resume-queue": _resume_queue,
    "limit-queue": _limit_queue,
    "pause-schedule": _of_schedule("Pause schedule {}?", _schedule_paused, "Pause it"),
    "resume-schedule": _of_schedule("Resume schedule {}?", _schedule_resumed, "Resume it"),
    "run-schedule": _of_schedule("Run schedule {} now?", _schedule_run, "Run it now"),
    "remove-schedule": _of_schedule("Remove schedule {}?", _schedule_removed, "Remove it", True),
}
