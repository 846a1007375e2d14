"""Something done to all jobs that a filter lets through."""

from __future__ import annotations

from ..._core.verbs import VERBS
from ..problems import Fault, invalid
from . import requests, responses
from .endpoint import Call, at
from .jobs import which


@at("POST /jobs/bulk", "operate", responses.BulkOut, {200: "What was done, or would be"}, body=requests.BulkIn)
def bulk(call: Call, _: None, body: requests.BulkIn) -> responses.BulkOut:
    """Cancel, pause, resume, run now or delete all jobs that a filter lets through.

    At least one filter is needed; without `state`, jobs in any state that allows the action are meant. With `preview`
    nothing is changed: `matching` says how many jobs would be come to, counted up to `most`. Jobs that no longer allow
    the action when their turn comes are counted as refused. If `more` is true, ask again with `next` as `before`.
    """
    asked = which(body.filter, "body.filter")
    if not asked:
        raise invalid([Fault("body.filter", "say which jobs, by state, queue, task, target, worker, error or time")])
    allowed = {**asked, "state": asked.get("state") or sorted(VERBS[body.action].sources)}
    matching = call.client.count(most=body.most + 1, **allowed)  # type: ignore[arg-type]
    if body.preview:
        return responses.BulkOut(min(matching, body.most), 0, 0, matching > body.most, True)
    limits = {"most": body.most, "seconds": call.limits.bulk_seconds, "before": body.before}
    done = call.client.bulk(body.action, **limits, **asked)  # type: ignore[arg-type]
    return responses.BulkOut(min(matching, body.most), done.done, done.refused, done.next is not None, False, done.next)


ENDPOINTS = [bulk]
