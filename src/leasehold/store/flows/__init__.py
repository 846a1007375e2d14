"""The verbs, one generator each: it yields statements, receives rows, and decides nothing that `core.machine` can.

In the order of a job's life: `enqueue`, `lease` (claim, renew, settle, reap), `promote`, `steer` (what people say),
`look` (what people ask), `upkeep`.
"""
