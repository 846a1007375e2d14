-- The first job in line at each target that is free, in the order of enqueue. A paused job keeps its position: then no
-- job at that target is next.
select h.target, h.id
from (
    select t.value as target,
           (select j.id from {schema}.jobs j
            where j.target = t.value and j.wait = 'target' order by j.seq limit 1) as id
    from (select distinct value from json_each(:targets)) t
    where not exists (select 1 from {schema}.jobs j where j.target = t.value and j.holds)
) h join {schema}.jobs j on j.id = h.id
where j.state = 'pending'
order by j.seq;
