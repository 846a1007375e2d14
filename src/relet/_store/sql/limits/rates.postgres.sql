-- The rates of these queues; for rates of a whole queue, how many jobs were started within the period, and in how many
-- seconds the oldest of them no longer counts; and whether some starts lie in the future, because the clock was set
-- back (moments are rounded up).
select r.queue, r.group_key, r.rate, r.per, u.number, u.frees_in,
       (select max(s.at) > {now} + make_interval(secs => 1 + r.per / 1000) from {schema}.starts s
        where s.queue = r.queue)
from {schema}.rates r left join lateral (
    select sum(s.number)::integer as number, extract(epoch from min(s.at) - {now})::float8 + r.per as frees_in
    from {schema}.starts s
    where r.group_key = '' and s.queue = r.queue and s.at > {now} - make_interval(secs => r.per)
) u on true
where r.queue = any(array(select json_array_elements_text(:queues::text::json)))
