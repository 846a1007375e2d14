"""Actions of the dashboard. The client acts in the user's name, so that the audit trail records who it was."""

from __future__ import annotations

import json
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any, cast

from ..._client.limits import QueueLimits
from ..._core.job import Job
from ..._core.verbs import VERBS, BulkVerb, Verb
from ..._core.views import QueueInfo
from ...errors import InvalidInput, JobNotFound, ReletError
from . import cache, filters
from .confirm import MAX_BULK, MAX_SELECTED, bulk_verb, confirm
from .formatting import many, visible_line
from .page import Page, PageContext, PageNotFound, local_path
from .rerun import changed_arguments, editable_arguments

Form = Mapping[str, Sequence[str]]
LONGEST = 8.0  # seconds that one bulk action may take
READ_ONLY = "Your token is read-only. Sign in with an operator token to make changes."


@dataclass(frozen=True)
class Outcome:
    """The result of an action, and the page to show next (`to`, a path below the root)."""

    message: str
    to: str
    succeeded: bool = True
    form_again: tuple[Page, PageContext] | None = None  # instead of `to`: the form with the values that were typed


def act(view: PageContext, action: str, form: Form) -> Outcome:
    """Perform an action, or explain why it was not performed."""
    back = local_path(_field(form, "back"))
    perform = ACTIONS.get(action)
    if perform is None:
        return Outcome(f"There is no action {visible_line(action, 40)}.", back, False)
    if not view.may_act:
        return Outcome(READ_ONLY, back, False)
    try:
        result = perform(view, form)
    except (ReletError, PageNotFound, ValueError, TypeError) as error:
        message = f"Nothing was changed: {visible_line(str(error), 300)}"
        return Outcome(message, back, False, _form_again(view, action, form, message))
    cache.forget(view)
    return result if isinstance(result, Outcome) else Outcome(result, back)


def _field(form: Form, name: str, default: str = "") -> str:
    values = form.get(name) or [default]
    return values[0].strip()


def _job(form: Form) -> str:
    return _field(form, "job")


def _job_message(job: Job[Any], what: str) -> str:
    return f"{job.task} {job.id[-8:]} {what}."


def _action_of(verb: Verb) -> Callable[[PageContext, Form], str]:
    """The action of a verb that needs only the job."""

    def perform(view: PageContext, form: Form) -> str:
        return _job_message(getattr(view.client, verb.name)(_job(form)), f"is {verb.done}")

    return perform


def _cancel(view: PageContext, form: Form) -> str:
    job = view.client.cancel(_job(form), chain=bool(_field(form, "chain")))
    return _job_message(job, "is cancelled" if job.state.over else "was asked to stop and will be cancelled")


def _pause(view: PageContext, form: Form) -> str:
    job = view.client.pause(_job(form))
    return _job_message(job, "is paused" if job.state == "paused" else "was asked to stop and will be paused")


def _resume(view: PageContext, form: Form) -> str:
    return _job_message(view.client.resume(_job(form)), "is resumed, with all its attempts restored")


def _complete(view: PageContext, form: Form) -> str:
    job = view.client.complete(_job(form), _json("result", _field(form, "result") or "null"))
    return _job_message(job, "has succeeded, with your result")


def _signal(view: PageContext, form: Form) -> str:
    name = _field(form, "name")
    if view.client.signal(_job(form), name, _json("value", _field(form, "value") or "null")):
        return f"Signal {visible_line(name, 60)} is sent."
    return f"Signal {visible_line(name, 60)} was sent before: the first value is kept."


def _delete(view: PageContext, form: Form) -> Outcome | str:
    how = _field(form, "how", "job")
    view.client.delete(_job(form), chain=how in ("chain", "dependents"), dependents=how == "dependents")
    back, gone = local_path(_field(form, "back")), _job(form)
    what = "The job is deleted." if how == "job" else "The chain is deleted."
    return Outcome(what, "/jobs" if gone in back else back)


def _bulk(view: PageContext, form: Form) -> str:
    verb = bulk_verb(_field(form, "action"))
    chosen = list(form.get("job") or [])[:MAX_SELECTED]
    rest = False
    if chosen:
        done, refused = _each(getattr(view.client, verb.name), chosen)
    else:
        criteria = filters.from_query({name: _field(form, name) for name in form})
        if not criteria:
            raise InvalidInput("No job is selected. Select some, or filter the list first.")
        bulk = view.client.bulk(
            cast(BulkVerb, verb.name), **filters.arguments(criteria), limit=MAX_BULK, seconds=LONGEST
        )
        done, refused, rest = bulk.done, bulk.refused, bulk.cursor is not None
    left = f" {many(refused, 'job was', 'jobs were')} left alone because of their state." if refused else ""
    again = " More jobs match. Repeat the action for the rest." if rest else ""
    return f"{many(done, 'job')}: {verb.done}.{left}{again}"


def _each(verb: Callable[[str], object], chosen: Sequence[str]) -> tuple[int, int]:
    done = refused = 0
    for id in chosen:
        try:
            verb(id)
            done += 1
        except ReletError:
            refused += 1
    return done, refused


def _enqueue(view: PageContext, form: Form) -> Outcome:
    name = _field(form, "task")
    task = view.tasks.get(name)
    if task is None:
        raise InvalidInput(f"This app has no task {name!r}.")
    arguments = _arguments("payload", form)
    options: dict[str, Any] = {name: _field(form, name) for name in ("queue", "target", "unique") if _field(form, name)}
    if _field(form, "priority"):
        options["priority"] = int(_field(form, "priority"))
    if _field(form, "delay"):
        options["delay"] = float(_field(form, "delay"))
    job = view.client.enqueue(task.using(**options).draft(**arguments))
    return Outcome(_job_message(job, "existed already" if job.existing else "is enqueued"), f"/jobs/{job.id}")


def _rerun(view: PageContext, form: Form) -> Outcome:
    """Enqueue the job again. A form without arguments leaves all of them as they are."""
    job = view.client.get(_job(form))
    if job is None:
        raise JobNotFound(_job(form))
    changed = None
    if "arguments" in form:
        changed = changed_arguments(editable_arguments(job, view.redact) or {}, _arguments("arguments", form))
    new = view.client.rerun(job, arguments=changed)
    return Outcome(_job_message(new, f"is enqueued, as a rerun of {job.id[-8:]}"), f"/jobs/{new.id}")


def _pause_queue(view: PageContext, form: Form) -> str:
    view.client.pause_queue(_field(form, "queue"))
    return f"Queue {_field(form, 'queue')} is paused. Running jobs continue."


def _resume_queue(view: PageContext, form: Form) -> str:
    view.client.resume_queue(_field(form, "queue"))
    return f"Queue {_field(form, 'queue')} is resumed."


def _limit_queue(view: PageContext, form: Form) -> str:
    """Set the limits. An empty field lifts its limit; a rate that was never set is left alone."""
    name = _field(form, "queue")
    queue = None if name == "*" else name
    info = next((one for one in view.client.queues() if one.queue == name), None)
    changes = [_queue_limits(form, queue, info), *_group_limits(form, info), *_group_rate(form)]
    for change in changes:  # all are checked before the first is stored
        QueueLimits(queue=queue, **change).checked()
    for change in changes:
        view.client.limit_queue(queue, **change)
    return f"{'All queues together' if queue is None else f'Queue {name}'}: the limits are set."


def _queue_limits(form: Form, queue: str | None, info: QueueInfo | None) -> dict[str, Any]:
    wanted: dict[str, Any] = {"max_running": _whole("max_running", form), "fair": None}
    if queue is not None:
        wanted["fair"] = bool(_field(form, "fair"))
    rate = _whole("rate", form)
    if rate is not None or (info and any(one.group is None for one in info.rates)):
        wanted |= {"rate": rate, "per": None if rate is None else float(_field(form, "per") or 1)}
    return wanted


def _group_limits(form: Form, info: QueueInfo | None) -> list[dict[str, Any]]:
    """The limits by group that differ from those of the queue. The form has a number for each group that it names."""
    current = {one.group: one.max_running for one in info.group_limits} if info else {}
    wanted: dict[str, int | None] = {}
    for typed, number in zip(form.get("limited_group", ()), form.get("group_limit", ()), strict=True):
        group = typed if typed in current else typed.strip()
        if group:
            wanted[group] = _integer("group limit", number.strip())
        elif number.strip():
            raise InvalidInput("a limit by group needs the name of its group, or * for each group")
    changed = {group: number for group, number in wanted.items() if current.get(group) != number}
    return [{"max_running": number, "group": group} for group, number in changed.items()]


def _group_rate(form: Form) -> list[dict[str, Any]]:
    group = _field(form, "group")
    if not group:
        return []
    rate = _whole("group_rate", form)
    return [{"rate": rate, "per": None if rate is None else float(_field(form, "group_per") or 1), "group": group}]


def _pause_schedule(view: PageContext, form: Form) -> str:
    return f"Schedule {view.client.schedules.pause(_field(form, 'name')).name} is paused."


def _resume_schedule(view: PageContext, form: Form) -> str:
    return f"Schedule {view.client.schedules.resume(_field(form, 'name')).name} ticks again."


def _run_schedule(view: PageContext, form: Form) -> Outcome:
    job = view.client.schedules.run_now(_field(form, "name"))
    return Outcome(_job_message(job, "is enqueued, in addition to the ticks"), f"/jobs/{job.id}")


def _remove_schedule(view: PageContext, form: Form) -> Outcome:
    view.client.schedules.remove(_field(form, "name"))
    return Outcome(f"Schedule {_field(form, 'name')} is removed.", "/schedules")


def _whole(name: str, form: Form) -> int | None:
    return _integer(name.replace("_", " "), _field(form, name))


def _integer(name: str, text: str) -> int | None:
    """The number in a field; None: the field is empty."""
    if not text:
        return None
    if not (text.isascii() and text.isdigit() and len(text) < 10):
        raise InvalidInput(f"{name} must be a whole number, not {text[:20]!r}")
    return int(text)


def _arguments(name: str, form: Form) -> dict[str, Any]:
    arguments = _json(name, _field(form, name) or "{}")
    if isinstance(arguments, dict):
        return arguments
    raise InvalidInput(f'The field {name} must be a JSON object of arguments by name, such as {{"account": "7"}}.')


def _json(name: str, text: str) -> Any:
    try:
        return json.loads(text)
    except (ValueError, RecursionError) as error:
        raise InvalidInput(f"The text of the field {name} is not JSON: {error}.") from None


def _form_again(view: PageContext, action: str, form: Form, message: str) -> tuple[Page, PageContext] | None:
    """The form of a new job again, with the values that were typed, so that the user need not type them anew.

    The values are not put into the URL, where others may read them.
    """
    if action not in ("enqueue", "rerun", "signal"):
        return None
    typed = {name: values[0] for name, values in form.items() if name != "csrf" and values}
    here = replace(view, query=typed, query_lists={}, message=message, succeeded=False)
    try:
        return replace(confirm(here, action), status=422), here
    except (ReletError, PageNotFound):  # its job is gone
        return None


ACTIONS: dict[str, Callable[[PageContext, Form], Outcome | str]] = {
    **{verb.word: _action_of(verb) for verb in VERBS.values()},
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
    "pause-schedule": _pause_schedule,
    "resume-schedule": _resume_schedule,
    "run-schedule": _run_schedule,
    "remove-schedule": _remove_schedule,
}
