-- Update waiting jobs from drafts: payload and context, and the time if the draft has one. A job whose time is ahead
-- then leaves the line at its target, and a paused one that was in line no longer blocks those behind it.
insert into {schema}.nudges (kind, key)
select 'target', j.target from json_each(:batch) g cross join {schema}.jobs j
where j.id = json_extract(g.value, '$.id') and j.state = 'paused' and j.wait is not null
  and json_extract(g.value, '$.timed')
  and coalesce(json_extract(g.value, '$.run_at'), {now} + coalesce(json_extract(g.value, '$.delay'), 0)) > {now};

update {schema}.jobs as jobs
set payload = g.payload, context = g.context,
    run_at = case when g.timed then g.due else jobs.run_at end,
    state = case when g.timed and g.due > {now} and jobs.state = 'queued' then 'pending' else jobs.state end,
    wait = case when g.timed and g.due > {now} and (jobs.state = 'queued' or jobs.wait = 'target')
                then case when jobs.state <> 'paused' then 'time' end else jobs.wait end
from (
    select json_extract(value, '$.id') as id, json_extract(value, '$.payload') as payload,
           json_extract(value, '$.timed') as timed, json_extract(value, '$.context') as context,
           coalesce(json_extract(value, '$.run_at'), {now} + coalesce(json_extract(value, '$.delay'), 0)) as due
    from json_each(:batch)
) g
where jobs.id = g.id and jobs.state in ('pending', 'queued', 'paused');
