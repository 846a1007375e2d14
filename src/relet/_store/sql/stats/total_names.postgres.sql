-- The first queues by name that have totals. Goes from one name to the next, with one index lookup for each.
with recursive names(queue) as (
    select min(s.queue) from {schema}.stats s where s.step = 0 and s.at = to_timestamp(0)
    union all
    select (select min(s.queue) from {schema}.stats s
            where s.step = 0 and s.at = to_timestamp(0) and s.queue > n.queue)
    from names n where n.queue is not null
)
select queue from names where queue is not null limit :limit::integer
