-- Running -> succeeded, guarded by the lease. Moves the row to `finished`; everything else depends on that.
insert into {schema}.finished ({kept}, losses, token, state, result, continued, finished_at)
select {j.kept}, j.losses, j.token, 'succeeded', json_extract(g.value, '$.result'),
       json_extract(g.value, '$.continued'), {now}
from json_each(:batch) g cross join {schema}.jobs j
where j.id = json_extract(g.value, '$.id') and j.token = json_extract(g.value, '$.token') and j.state = 'running';

insert into {schema}.nudges (kind, key)
select 'target', j.target
from json_each(:batch) g cross join {schema}.jobs j
where j.id = json_extract(g.value, '$.id') and j.token = json_extract(g.value, '$.token') and j.state = 'running'
  and j.holds
union all
select 'chain', j.chain
from json_each(:batch) g cross join {schema}.jobs j
where j.id = json_extract(g.value, '$.id') and j.token = json_extract(g.value, '$.token') and j.state = 'running'
  and j.watched and not json_extract(g.value, '$.continued');

delete from {schema}.keys
where until is null and job in (
    select j.id
    from json_each(:batch) g cross join {schema}.jobs j
    where j.id = json_extract(g.value, '$.id') and j.token = json_extract(g.value, '$.token') and j.state = 'running'
      and j.unique_key is not null)
  and key in (
    select j.unique_key from json_each(:batch) g cross join {schema}.jobs j
    where j.id = json_extract(g.value, '$.id') and j.unique_key is not null);

delete from {schema}.jobs
where state = 'running' and id in (
    select j.id from json_each(:batch) g cross join {schema}.jobs j
    where j.id = json_extract(g.value, '$.id') and j.token = json_extract(g.value, '$.token') and j.state = 'running')
returning id, token, chain, position, watched, holds;
