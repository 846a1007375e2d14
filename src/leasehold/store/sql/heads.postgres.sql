-- heads: who is first in line at each target that nobody holds, in the order of enqueue.
select t.target, h.id::text
from (select distinct json_array_elements_text(:targets::text::json) as target) t
cross join lateral (
    select j.id, j.seq from {schema}.jobs j where j.target = t.target and j.wait = 'target' order by j.seq limit 1
) h
where not exists (select from {schema}.jobs j where j.target = t.target and j.holds)
order by h.seq
