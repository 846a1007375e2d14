"""The gateway: serves the worker protocol (docs/gateway.md) over HTTP, for workers that do not reach the database.

claims    claims for waiting workers, one at a time for each set of tasks and queues
requests  tells waiting workers of requests to cancel or pause
service   the other verbs of the protocol
drafts    the next job of a chain, from its document
upkeep    the maintenance of the store
server    HTTP: authentication, bodies, answers
"""
