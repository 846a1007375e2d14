-- The first job in line at each target that is free, in the order of enqueue. A paused job keeps its position: then no
-- job at that target is next.
select t.target, h.id::text
from (select distinct json_array_elements_text(:targets::text::json) as target) t
cross join lateral (
    select j.id, j.seq, j.state from {schema}.jobs j
    where j.target = t.target and j.wait = 'target' order by j.seq limit 1
) h
where h.state = 'pending' and not exists (select from {schema}.jobs j where j.target = t.target and j.holds)
order by h.seq
