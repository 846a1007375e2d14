-- The jobs in line at a target, in order, and how many there are in all, counted up to `count_limit`.
select id::text,
       (select count(*) from (
            select from {schema}.jobs where wait = 'target' and target = :target::text
            limit :count_limit::integer) line)
from {schema}.jobs where wait = 'target' and target = :target::text order by seq limit :limit::integer
