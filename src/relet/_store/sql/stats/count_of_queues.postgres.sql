-- One count of some queues in steps of at least this length. Counts in shorter steps are added up. Each moment is
-- looked up by the whole primary key.
with moments as materialized (
    select s.step, m.at
    from unnest(array[60, 600, 3600, 21600]) as s(step)
    cross join lateral generate_series(
        greatest(to_timestamp(:since::float8),
                 (select f.at from {schema}.stats f where f.step = s.step order by f.at limit 1)),
        (select l.at from {schema}.stats l where l.step = s.step order by l.at desc limit 1),
        make_interval(secs => s.step)) as m(at)
    where s.step <= :step::integer and m.at < to_timestamp(:until::float8)
)
select floor(extract(epoch from m.at) / :step::integer)::float8 * :step::integer as moment, t.queue, :only::text,
       t.bucket, case when bool_or(t.peak) then max(t.number) else sum(t.number) end
from moments m cross join unnest(:queues::text[]) as q(queue)
cross join lateral (
    select c.queue, c.bucket, c.peak, c.number
    from {schema}.stats c
    where c.step = m.step and c.at = m.at and c.queue = q.queue and c.name = :only::text
    offset 0
) t
group by 1, t.queue, t.bucket
order by 1, t.queue
