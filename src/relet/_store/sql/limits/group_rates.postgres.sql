-- The recent starts of each group, within its own rate and within the rate for each group.
select r.group_key, k.group_key, u.number, u.frees_in
from {schema}.rates r
cross join json_array_elements_text(:groups::text::json) as k(group_key)
cross join lateral (
    select sum(s.number)::integer as number, extract(epoch from min(s.at) - {now})::float8 + r.per as frees_in
    from {schema}.starts s
    where s.queue = r.queue and s.group_key = k.group_key and s.at > {now} - make_interval(secs => r.per)
) u
where r.queue = :queue::text and r.group_key in ('*', k.group_key) and k.group_key <> '' and u.number is not null
