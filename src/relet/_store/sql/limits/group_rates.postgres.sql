-- The recent starts of each key, within its own rate and within the rate for each key.
select r.key, k.key, u.number, u.frees_in
from {schema}.rates r
cross join json_array_elements_text(:keys::text::json) as k(key)
cross join lateral (
    select sum(s.number)::integer as number, extract(epoch from min(s.at) - {now})::float8 + r.per as frees_in
    from {schema}.starts s
    where s.queue = r.queue and s.key = k.key and s.at > {now} - make_interval(secs => r.per)
) u
where r.queue = :queue::text and r.key in ('*', k.key) and k.key <> '' and u.number is not null
