"""Pages of Django's admin: jobs, their attempts, and the verbs that an operator applies to them.

The list reads the view of Relet on Django's connection. A page of one job, and the verbs, use the client of the app,
so that values are redacted and the audit trail records who did it.
"""

from __future__ import annotations

import json
from collections.abc import Iterator
from datetime import timedelta
from functools import cached_property
from typing import Any, ClassVar

from django.contrib import admin, messages
from django.core.exceptions import PermissionDenied
from django.core.paginator import Paginator
from django.http import Http404, HttpRequest, HttpResponse, HttpResponseRedirect
from django.template.response import TemplateResponse
from django.utils import timezone

from ..._client.client import Client
from ..._core.job import State
from ..._core.redact import redacted
from ..._core.verbs import VERBS
from ...errors import InvalidInput, InvalidTransition, JobNotFound, StoreError
from . import get_app
from .databases import DjangoApp
from .models import Job, alias

COUNTED = 10_000  # jobs that the list counts; it says "more" by its last page
#: The verbs of the pages. `resume` runs a failed job again, with all its attempts restored.
ACTIONS = {"resume": "Retry or resume", "run_now": "Run now", "pause": "Pause", "cancel": "Cancel"}


class CappedPaginator(Paginator):  # type: ignore[misc]
    """Counts no more than the first jobs: a queue may have kept millions."""

    @cached_property
    def count(self) -> int:
        return int(self.object_list[:COUNTED].count())


class CreatedFilter(admin.SimpleListFilter):  # type: ignore[misc]
    """Jobs by their age."""

    title = "created"
    parameter_name = "created"
    hours: ClassVar = {"1": "in the last hour", "24": "in the last day", "168": "in the last week"}

    def lookups(self, request: HttpRequest, model_admin: Any) -> list[tuple[str, str]]:
        return list(self.hours.items())

    def queryset(self, request: HttpRequest, queryset: Any) -> Any:
        if self.value() not in self.hours:
            return queryset
        return queryset.filter(created_at__gte=timezone.now() - timedelta(hours=int(self.value())))


class _NamesFilter(admin.SimpleListFilter):  # type: ignore[misc]
    """Names that the app knows: a query for those in use would read every job."""

    def names(self, app: DjangoApp) -> list[str]:
        raise NotImplementedError

    def lookups(self, request: HttpRequest, model_admin: Any) -> list[tuple[str, str]]:
        return [(name, name) for name in self.names(_app())]

    def queryset(self, request: HttpRequest, queryset: Any) -> Any:
        return queryset.filter(**{self.parameter_name: self.value()}) if self.value() else queryset


class TaskFilter(_NamesFilter):
    """Jobs of one task."""

    title = "task"
    parameter_name = "task"

    def names(self, app: DjangoApp) -> list[str]:
        return sorted(app.tasks)


class QueueFilter(_NamesFilter):
    """Jobs of one queue."""

    title = "queue"
    parameter_name = "queue"

    def names(self, app: DjangoApp) -> list[str]:
        declared = {task.queue for task in app.tasks.values()}
        return sorted(declared.union(one.queue for one in app.client.queues()))


class JobAdmin(admin.ModelAdmin):  # type: ignore[misc]
    """The jobs of the first backend of Relet."""

    list_display = ("id", "task", "queue", "state", "attempts", "created_at", "run_at", "worker", "error_type")
    list_filter = ("state", QueueFilter, TaskFilter, CreatedFilter)
    search_fields = ("=id", "=target", "=unique", "=worker")
    search_help_text = "an id, a target, a unique key or a worker, in full"
    ordering = ("-id",)
    show_full_result_count = False
    paginator = CappedPaginator
    actions = tuple(f"{verb}_jobs" for verb in ACTIONS)
    change_form_template = "admin/relet/job/details.html"

    @admin.display(ordering="attempt")  # type: ignore[untyped-decorator]
    def attempts(self, job: Job) -> str:
        return f"{job.attempt} of {job.max_attempts}"

    def get_queryset(self, request: HttpRequest) -> Any:
        return super().get_queryset(request).using(_app().database)

    def has_add_permission(self, request: HttpRequest) -> bool:
        return False

    def has_delete_permission(self, request: HttpRequest, obj: Any = None) -> bool:
        return False

    @admin.action(description=ACTIONS["resume"], permissions=["change"])  # type: ignore[untyped-decorator]
    def resume_jobs(self, request: HttpRequest, queryset: Any) -> None:
        self._apply_to_all("resume", request, queryset)

    @admin.action(description=ACTIONS["run_now"], permissions=["change"])  # type: ignore[untyped-decorator]
    def run_now_jobs(self, request: HttpRequest, queryset: Any) -> None:
        self._apply_to_all("run_now", request, queryset)

    @admin.action(description=ACTIONS["pause"], permissions=["change"])  # type: ignore[untyped-decorator]
    def pause_jobs(self, request: HttpRequest, queryset: Any) -> None:
        self._apply_to_all("pause", request, queryset)

    @admin.action(description=ACTIONS["cancel"], permissions=["change"])  # type: ignore[untyped-decorator]
    def cancel_jobs(self, request: HttpRequest, queryset: Any) -> None:
        self._apply_to_all("cancel", request, queryset)

    def _apply_to_all(self, verb: str, request: HttpRequest, queryset: Any) -> None:
        ids = list(queryset.values_list("id", flat=True))
        refused = list(self._apply(verb, request, ids))
        done = len(ids) - len(refused)
        if done:
            messages.success(request, f"{done} {'job' if done == 1 else 'jobs'}: {VERBS[verb].done}")
        for text in refused[:10]:
            messages.warning(request, text)

    def _apply(self, verb: str, request: HttpRequest, ids: list[str]) -> Iterator[str]:
        """Apply a verb to each job. Yields why some refuse it."""
        client = _client(request)
        for id in ids:
            try:
                getattr(client, verb)(id)
            except (InvalidTransition, JobNotFound, StoreError) as error:
                yield str(error)

    def change_view(
        self, request: HttpRequest, object_id: str, form_url: str = "", extra_context: Any = None
    ) -> HttpResponse:
        """The page of one job. A POST names a verb."""
        if not self.has_view_or_change_permission(request):
            raise PermissionDenied
        if request.method == "POST":
            return self._post(request, object_id)
        app = _app()
        try:
            found = redacted(_client(request).describe(object_id), app.redact)
        except (JobNotFound, InvalidInput):
            raise Http404(f"There is no job {object_id}.") from None
        context = {
            **self.admin_site.each_context(request),
            "opts": self.opts,
            "title": f"{found.job.task} {found.job.id}",
            "details": found,
            "fields": _fields(found.job),
            "payload": _text(found.job.payload),
            "result": _text(found.job.result) if found.job.state is State.SUCCEEDED else None,
            "verbs": self._verbs(request, found.job),
            **(extra_context or {}),
        }
        return TemplateResponse(request, self.change_form_template, context)

    def _verbs(self, request: HttpRequest, job: Any) -> list[tuple[str, str, str]]:
        """The verbs that would change the job, with labels and explanations."""
        if not self.has_change_permission(request):
            return []
        labels = {**ACTIONS, "resume": "Retry" if job.state is State.FAILED else "Resume"}
        return [(name, label, VERBS[name].note) for name, label in labels.items() if VERBS[name].allows(job)]

    def _post(self, request: HttpRequest, object_id: str) -> HttpResponse:
        verb = request.POST.get("verb")
        if verb not in ACTIONS or not self.has_change_permission(request):
            raise PermissionDenied
        refused = list(self._apply(verb, request, [object_id]))
        if refused:
            messages.warning(request, refused[0])
        else:
            messages.success(request, f"{object_id}: {VERBS[verb].done}")
        return HttpResponseRedirect(request.get_full_path())


def _app() -> DjangoApp:
    return get_app(alias() or "default")


def _client(request: HttpRequest) -> Client:
    """A client whose changes the audit trail records under the user's name. It decodes no encrypted value."""
    name = "".join(letter if letter.isprintable() else "?" for letter in request.user.get_username())
    return _app().client._without_codecs().acting_as(f"admin:{name}"[:512])


def _fields(job: Any) -> list[tuple[str, Any]]:
    """The fields of a job to list, without those that are empty."""
    names = (
        "state", "wait", "queue", "priority", "attempt", "max_attempts", "losses", "target", "group", "unique", "tags",
        "worker", "request", "awaits", "created_at", "run_at", "started_at", "finished_at", "start_by", "expires_at",
        "chain", "rerun_of", "error_type",
    )  # fmt: skip
    found = [(name.replace("_", " "), getattr(job, name)) for name in names]
    return [(name, ", ".join(value) if isinstance(value, tuple) else value) for name, value in found if value]


def _text(value: Any) -> str:
    return json.dumps(value, indent=2, ensure_ascii=False, default=str)


if alias() is not None:
    admin.site.register(Job, JobAdmin)
