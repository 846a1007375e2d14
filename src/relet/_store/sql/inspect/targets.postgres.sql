-- A page of targets that a job holds or waits for, by name: the holder of each, and how many jobs are in line.
with names as materialized (
    select target from (
        (select target from {schema}.jobs where holds and target > :cursor::text order by target limit :limit::integer)
        union
        (select distinct target from {schema}.jobs where wait = 'target' and target > :cursor::text
         order by target limit :limit::integer)
    ) n
    order by target limit :limit::integer
)
select n.target, (select j.id::text from {schema}.jobs j where j.holds and j.target = n.target),
       (select count(*) from {schema}.jobs j where j.wait = 'target' and j.target = n.target)
from names n order by n.target
