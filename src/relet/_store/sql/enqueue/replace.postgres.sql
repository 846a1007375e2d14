-- Update waiting jobs, locked by an earlier statement, from drafts: payload and context, and the time if the draft has
-- one. A job whose time is ahead then leaves the line at its target, and a paused one that was in line no longer blocks
-- those behind it.
with said as materialized (
    select b.*, to_timestamp(b.run_at) as moment, {now} + make_interval(secs => coalesce(b.delay, 0)) as later
    from json_to_recordset(:batch::text::json) as b(
        id uuid, payload text, context text, run_at float8, delay float8, timed boolean)
),
given as materialized (
    select s.*, coalesce(s.moment, s.later) as due, s.timed and coalesce(s.moment, s.later) > {now} as ahead from said s
),
nudged as (
    insert into {schema}.nudges (kind, key)
    select 'target', j.target from given g join {schema}.jobs j on j.id = g.id
    where g.ahead and j.state = 'paused' and j.wait is not null
)
update {schema}.jobs j
set payload = g.payload::json, context = g.context,
    run_at = case when g.timed then g.due else j.run_at end,
    state = case when g.ahead and j.state = 'queued' then 'pending' else j.state end,
    wait = case when g.ahead and (j.state = 'queued' or j.wait = 'target')
                then case when j.state <> 'paused' then 'time' end else j.wait end
from given g
where j.id = g.id and j.state in ('pending', 'queued', 'paused')
