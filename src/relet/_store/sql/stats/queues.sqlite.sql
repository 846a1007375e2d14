-- The queues with counts in steps of at most this length, by name, after one of them. Goes from one name to the next:
-- it is the least of those that follow at any moment, with one index lookup for each moment.
with recursive moments(step, at, last) as (
    select s.column1,
           max(:since, (select min(f.at) from {schema}.stats f where f.step = s.column1)),
           min(:until - 1, (select max(l.at) from {schema}.stats l where l.step = s.column1))
    from (values (60), (600), (3600), (21600)) as s
    where s.column1 <= :step
    union all
    select step, at + step, last from moments where at + step <= last
),
names(queue) as (
    select :after
    union all
    select (
        select min((select c.queue from {schema}.stats c where c.step = m.step and c.at = m.at and c.queue > n.queue
                    order by c.queue limit 1))
        from moments m where m.at <= m.last
    )
    from names n where n.queue is not null
)
select queue from names where queue is not null limit :limit offset 1;
