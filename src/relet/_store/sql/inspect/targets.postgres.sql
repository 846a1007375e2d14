-- A page of targets that a job holds or waits for, by name: the holder of each, and how many jobs are in line, counted
-- up to `count_limit`. Goes from one target with a line to the next, with one index lookup for each.
with recursive lines(target) as (
    select :cursor::text
    union all
    select (select min(j.target) from {schema}.jobs j where j.wait = 'target' and j.target > l.target)
    from lines l where l.target is not null
),
names as materialized (
    select target from (
        (select target from {schema}.jobs where holds and target > :cursor::text order by target limit :limit::integer)
        union
        (select target from lines where target is not null offset 1 limit :limit::integer)
    ) n
    order by target limit :limit::integer
)
select n.target, (select j.id::text from {schema}.jobs j where j.holds and j.target = n.target),
       (select count(*) from (
            select from {schema}.jobs j where j.wait = 'target' and j.target = n.target
            limit :count_limit::integer) line)
from names n order by n.target
