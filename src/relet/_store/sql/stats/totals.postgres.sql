-- All counts since the store was created, of the first queues by name after one of them. Goes from one name to the
-- next, with one index lookup for each.
with recursive names(queue) as (
    select :after::text
    union all
    select (select min(s.queue) from {schema}.stats s
            where s.step = 0 and s.at = to_timestamp(0) and s.queue > n.queue)
    from names n where n.queue is not null
)
select 0::float8, s.queue, s.name, s.bucket, s.number
from (select queue from names where queue is not null offset 1 limit :limit::integer) n
cross join lateral (
    select t.queue, t.name, t.bucket, t.number from {schema}.stats t
    where t.step = 0 and t.at = to_timestamp(0) and t.queue = n.queue
    offset 0
) s
order by s.queue
