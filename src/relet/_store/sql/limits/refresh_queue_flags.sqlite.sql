-- What its rates mean for a queue: are there any, and do keys matter? Then all its jobs have one.
update {schema}.queues
set rated = exists (select 1 from {schema}.rates r where r.queue = :queue),
    by_key = fair or exists (select 1 from {schema}.rates r where r.queue = :queue and r.key <> '')
where queue = :queue;

update {schema}.jobs set key = ''
where queue = :queue and key is null and exists (select 1 from {schema}.queues q where q.queue = :queue and q.by_key);
