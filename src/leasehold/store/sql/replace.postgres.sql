-- replace: jobs that wait, locked by an earlier statement, take what is said now; their time, too, where it is said.
update {schema}.jobs j
set payload = g.payload::json, context = g.context,
    run_at = case when g.timed then g.due else j.run_at end,
    state = case when g.timed and g.due > {now} and j.state = 'queued' then 'pending' else j.state end,
    wait = case when g.timed and g.due > {now} and (j.state = 'queued' or j.wait = 'target') then 'time' else j.wait end
from (
    select b.*, coalesce(to_timestamp(b.run_at), {now} + make_interval(secs => coalesce(b.delay, 0))) as due
    from json_to_recordset(:batch::text::json) as b(id uuid, payload text, context text, run_at float8, delay float8, timed boolean)
) g
where j.id = g.id and j.state in ('pending', 'queued', 'paused')
