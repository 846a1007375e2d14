-- replace: jobs that wait take what is said now; their time, too, where it is said.
update {schema}.jobs as jobs
set payload = g.payload, context = g.context,
    run_at = case when g.timed then g.due else jobs.run_at end,
    state = case when g.timed and g.due > {now} and jobs.state = 'queued' then 'pending' else jobs.state end,
    wait = case when g.timed and g.due > {now} and (jobs.state = 'queued' or jobs.wait = 'target') then 'time' else jobs.wait end
from (
    select json_extract(value, '$.id') as id, json_extract(value, '$.payload') as payload, json_extract(value, '$.timed') as timed,
           json_extract(value, '$.context') as context,
           coalesce(json_extract(value, '$.run_at'), {now} + coalesce(json_extract(value, '$.delay'), 0)) as due
    from json_each(:batch)
) g
where jobs.id = g.id and jobs.state in ('pending', 'queued', 'paused');
