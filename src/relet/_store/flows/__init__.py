"""The verbs, one generator each: it yields statements, receives rows, and decides nothing that `core.machine` can.

In the order of a job's life: `enqueue` (with `keys` and `replacing`), `promote`, `lease` (claim, renew, settle, reap;
with `scope` and `limits`), `handler` (what a handler writes), `steer` and `chains` (what people say), `schedules`,
`upkeep`.

What people see: `look`, `search`, `targets`, `failures`, `workers`, `stats`, `audit`, `doctor`; what workers say of
themselves: `reports`. `rows` is between rows and nouns.
"""
