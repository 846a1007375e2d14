-- The jobs in line at a target, in order, and how many there are in all, counted up to `count_limit`.
select id,
       (select count(*) from (
            select 1 from {schema}.jobs where wait = 'target' and target = :target limit :count_limit))
from {schema}.jobs where wait = 'target' and target = :target order by seq limit :limit;
