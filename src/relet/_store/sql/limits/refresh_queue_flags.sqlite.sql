-- Set the flags of a queue: does it have rates or limits by group, and do groups matter? If they do, give all its jobs
-- a group.
update {schema}.queues
set rated = exists (select 1 from {schema}.rates r where r.queue = :queue)
         or exists (select 1 from {schema}.group_limits l where l.queue = :queue),
    by_group = fair or exists (select 1 from {schema}.rates r where r.queue = :queue and r.group_key <> '')
            or exists (select 1 from {schema}.group_limits l where l.queue = :queue)
where queue = :queue;

update {schema}.jobs set group_key = ''
where queue = :queue and group_key is null and exists (select 1 from {schema}.queues q where q.queue = :queue
    and q.by_group);
