-- All counts since the store was created, of the first queues by name after one of them. Goes from one name to the
-- next, with one index lookup for each.
with recursive names(queue) as (
    select :after
    union all
    select (select min(s.queue) from {schema}.stats s where s.step = 0 and s.at = 0 and s.queue > n.queue)
    from names n where n.queue is not null
)
select 0.0, s.queue, s.name, s.bucket, s.number
from (select queue from names where queue is not null limit :limit offset 1) n
cross join {schema}.stats s on s.step = 0 and s.at = 0 and s.queue = n.queue
order by s.queue;
