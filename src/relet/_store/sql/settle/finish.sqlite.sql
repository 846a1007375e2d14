-- Move rows of this transaction from `jobs` to `finished`. Like succeed, without its guard.
insert into {schema}.finished (id, state, queue, task, priority, target, group_key, payload, result, error, attempt,
                               max_attempts, losses, version, worker, token, chain, position, continued, unique_key,
                               created_at, run_at, started_at, renewed_at, context, finished_at)
select j.id, json_extract(g.value, '$.state'), j.queue, j.task, j.priority, j.target, j.group_key, j.payload,
       json_extract(g.value, '$.result'), coalesce(json_extract(g.value, '$.error'), j.error), j.attempt,
       j.max_attempts, json_extract(g.value, '$.losses'), j.version, j.worker,
       case when json_extract(g.value, '$.keeps_token') then j.token end,
       j.chain, j.position, json_extract(g.value, '$.continued'), j.unique_key, j.created_at, j.run_at, j.started_at,
       j.renewed_at, j.context, {now}
from json_each(:batch) g cross join {schema}.jobs j
where j.id = json_extract(g.value, '$.id');

insert into {schema}.nudges (kind, key)
select 'target', j.target from json_each(:batch) g cross join {schema}.jobs j
where j.id = json_extract(g.value, '$.id') and (j.holds or j.state = 'paused' and j.wait is not null)
union all
select 'chain', j.chain from json_each(:batch) g cross join {schema}.jobs j
where j.id = json_extract(g.value, '$.id') and j.watched and not json_extract(g.value, '$.continued');

delete from {schema}.keys
where until is null and (key, job) in (
    select j.unique_key, j.id from json_each(:batch) g cross join {schema}.jobs j
    where j.id = json_extract(g.value, '$.id'));

delete from {schema}.jobs
where id in (select json_extract(value, '$.id') from json_each(:batch))
returning id, chain, position, watched, holds;
