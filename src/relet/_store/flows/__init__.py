"""The operations on a store, one generator each: it yields statements and receives rows.

Decisions that need no database are made in `core.machine`. In the order of a job's life: `enqueue` (with
`enqueue_constrained`, `unique_keys` and `replace`), `promote`, `claim` (with `claim_scope`, `limits` and `quarantine`),
`lease` (renew, progress, reap), `settle`, `completion` (writes of a handler), `control` and `chains` (writes of
operators), `operations` (one effect for repeated changes), `schedules`, `maintenance`.

For reading: `inspect`, `search`, `targets`, `failures`, `workers`, `stats`, `audit`, `doctor`. Workers write
`worker_reports`; the web writes `web_sessions`. `mapping` converts between rows and the types of the core.
"""
