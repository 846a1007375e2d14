-- Move rows of this transaction from `jobs` to `finished`. Like succeed, without its guard.
insert into {schema}.finished ({kept}, losses, token, state, result, error, error_type, continued, finished_at)
select {j.kept}, json_extract(g.value, '$.losses'), case when json_extract(g.value, '$.keeps_token') then j.token end,
       json_extract(g.value, '$.state'), json_extract(g.value, '$.result'),
       coalesce(json_extract(g.value, '$.error'), j.error), json_extract(g.value, '$.error_type'),
       json_extract(g.value, '$.continued'), {now}
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
