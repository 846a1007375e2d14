-- Set the flags of a queue: does it have rates, and do keys matter? If they do, give all its jobs a key.
update {schema}.queues
set rated = exists (select 1 from {schema}.rates r where r.queue = :queue),
    by_key = fair or exists (select 1 from {schema}.rates r where r.queue = :queue and r.key <> '')
where queue = :queue;

update {schema}.jobs set key = ''
where queue = :queue and key is null and exists (select 1 from {schema}.queues q where q.queue = :queue and q.by_key);
