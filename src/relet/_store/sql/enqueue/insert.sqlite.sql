-- Insert new rows, and nudges for those that wait for a target. (Materialised: json_each would write out the value
-- again for each column. After the word insert: by that word Python knows to open a caller's transaction.)
insert into {schema}.jobs (id, seq, state, wait, queue, task, priority, rank, target, group_key, payload, run_at,
                           max_attempts, policy, lease, unique_key, windowed, chain, position, waits,
                           dependency_count, watched, context, created_at, start_by)
with given as materialized (select key, value from json_each(:batch))
select json_extract(value, '$.id'), (select last from {schema}.sequence) + key + 1,
       case when wait is null then 'queued' else 'pending' end, wait,
       json_extract(value, '$.queue'), json_extract(value, '$.task'), json_extract(value, '$.priority'),
       -json_extract(value, '$.priority'), json_extract(value, '$.target'),
       case when json_extract(value, '$.queue') in (select queue from {schema}.queues where by_group)
            then coalesce(json_extract(value, '$.group_key'), '') else json_extract(value, '$.group_key') end,
       json_extract(value, '$.payload'), due,
       json_extract(value, '$.max_attempts'), json_extract(value, '$.policy'), json_extract(value, '$.lease'),
       json_extract(value, '$.unique_key'), json_extract(value, '$.windowed'), json_extract(value, '$.chain'),
       json_extract(value, '$.position'), json_extract(value, '$.waits'), json_extract(value, '$.waits'),
       json_extract(value, '$.watched'), json_extract(value, '$.context'), {now},
       json_extract(value, '$.start_by')
from (
    select key, value, due,
           case when json_extract(value, '$.waits') > 0 then 'jobs'
                when due > {now} then 'time'
                when json_extract(value, '$.target') is not null then 'target' end as wait
    from (
        select key, value,
               coalesce(json_extract(value, '$.run_at'), {now} + coalesce(json_extract(value, '$.delay'), 0)) as due
        from given
    )
)
where true
on conflict (id) do nothing;

insert into {schema}.nudges (kind, key)
select 'target', target
from {schema}.jobs
where id in (select json_extract(value, '$.id') from json_each(:batch))
  and seq > (select last from {schema}.sequence) and wait = 'target'
order by seq;

-- The rows just added are those beyond the sequence's last; only then does it move past them.
select j.id, j.state, j.wait, j.created_at, j.run_at, 1
from {schema}.jobs j
where j.id in (select json_extract(value, '$.id') from json_each(:batch))
  and j.seq > (select last from {schema}.sequence);

update {schema}.sequence set last = last + json_array_length(:batch);
