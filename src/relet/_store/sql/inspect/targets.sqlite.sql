-- A page of targets that a job holds or waits for, by name: the holder of each, and how many jobs are in line.
with names as materialized (
    select target from (select target from {schema}.jobs where holds and target > :after order by target limit :most)
    union
    select target from (
        select distinct target from {schema}.jobs where wait = 'target' and target > :after order by target limit :most)
    order by 1 limit :most
)
select n.target, (select j.id from {schema}.jobs j where j.holds and j.target = n.target),
       (select count(*) from {schema}.jobs j where j.wait = 'target' and j.target = n.target)
from names n order by n.target;
