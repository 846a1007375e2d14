"""Endpoints for chains: a job and the jobs that continued it. The id of any job of a chain identifies it."""

from __future__ import annotations

from . import requests, responses
from .endpoint import Call, Result, at
from .jobs import completed

_NO_CHAIN = {404: "There is no such chain; it may have been deleted or pruned"}
_STATE = {409: "The state of its last job does not allow this"}
_CHANGED = {200: "The changed job of the chain, as it is now", **_NO_CHAIN, **_STATE}


@at("GET /chains/{id}", "read", responses.ChainOut, {200: "The chain and its jobs, in order", **_NO_CHAIN})
def show_chain(call: Call, _: None, __: None) -> responses.ChainOut:
    """Show a chain: all its jobs in order, its state and its result."""
    return responses.chain_out(call.client.chain(call.path["id"]), call.redact)


@at("POST /chains/{id}/cancel", "operate", responses.JobOut, _CHANGED)
def cancel_chain(call: Call, _: None, __: None) -> responses.JobOut:
    """Cancel the job of a chain that is not over yet."""
    return responses.job_out(call.client.cancel(call.path["id"], chain=True), call.redact)


@at("POST /chains/{id}/complete", "operate", responses.JobOut, _CHANGED, body=requests.CompletionIn)
def complete_chain(call: Call, _: None, body: requests.CompletionIn) -> responses.JobOut:
    """Complete the job of a chain that is not over yet."""
    return completed(call, body, chain=True)


@at(
    "DELETE /chains/{id}",
    "operate",
    None,
    {204: "All its jobs are deleted", **_NO_CHAIN, 409: "Other jobs wait for it"},
    query=requests.DeleteChainQuery,
)
def delete_chain(call: Call, query: requests.DeleteChainQuery, _: None) -> Result:
    """Delete all jobs of a chain; with `dependents`, also the chains of all jobs that wait for it."""
    call.client.delete(call.path["id"], chain=True, dependents=query.dependents)
    return Result(None, 204)


ENDPOINTS = [show_chain, cancel_chain, complete_chain, delete_chain]
