-- The queues with counts in steps of at most this length, by name, after one of them. Goes from one name to the next:
-- it is the least of those that follow at any moment, with one index lookup for each moment.
with recursive moments as materialized (
    select s.step, m.at
    from unnest(array[60, 600, 3600, 21600]) as s(step)
    cross join lateral generate_series(
        greatest(to_timestamp(:since::float8),
                 (select f.at from {schema}.stats f where f.step = s.step order by f.at limit 1)),
        (select l.at from {schema}.stats l where l.step = s.step order by l.at desc limit 1),
        make_interval(secs => s.step)) as m(at)
    where s.step <= :step::integer and m.at < to_timestamp(:until::float8)
),
names(queue) as (
    select :after::text
    union all
    select (
        select min(f.queue) from moments m cross join lateral (
            select c.queue from {schema}.stats c
            where c.step = m.step and c.at = m.at and c.queue > n.queue
            order by c.queue
            limit 1
        ) f
    )
    from names n where n.queue is not null
)
select queue from names where queue is not null offset 1 limit :limit::integer
