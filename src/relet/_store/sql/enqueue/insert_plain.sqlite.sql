-- Insert new jobs that wait for nothing but their targets, in order. Values that jobs of one task share are sent once,
-- as a kind; each job names the number of its kind.
create table if not exists temp.adding (
    number integer primary key, id text not null, payload text not null, kind integer not null, group_key text,
    context text,
    unique_key text, target text);

delete from temp.adding;

insert into temp.adding (id, payload, kind, group_key, context, unique_key, target)
values (:ids, :payloads, :kinds, :groups, :contexts, :uniques, :targets);

insert into {schema}.jobs (id, seq, state, wait, target, queue, task, priority, rank, group_key, payload, run_at,
                           max_attempts, policy, lease, chain, context, unique_key, watched, created_at)
with kinds as materialized (
    select q.key + 1 as number, q.value as queue, json_extract(:tasks, q.fullkey) as task,
           json_extract(:priorities, q.fullkey) as priority, json_extract(:max_attempts, q.fullkey) as max_attempts,
           json_extract(:policies, q.fullkey) as policy, json_extract(:leases, q.fullkey) as lease,
           json_extract(:watched, q.fullkey) as watched,
           (select '' from {schema}.queues k where k.queue = q.value and k.by_group) as group_key
    from json_each(:queues) q
)
select a.id, (select last from {schema}.sequence) + a.number,
       case when a.target is null then 'queued' else 'pending' end,
       case when a.target is not null then 'target' end, a.target, k.queue, k.task, k.priority, -k.priority,
       coalesce(a.group_key, k.group_key), a.payload, {now}, k.max_attempts, k.policy, k.lease, a.id, a.context,
       a.unique_key, k.watched, {now}
from temp.adding a cross join kinds k
where k.number = a.kind;

insert into {schema}.nudges (kind, key) select 'target', target from temp.adding where target is not null;

update {schema}.sequence set last = last + (select count(*) from temp.adding);

select created_at, 1 from {schema}.jobs where id = (select id from temp.adding where number = 1);
