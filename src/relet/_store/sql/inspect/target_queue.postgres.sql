-- The jobs in line at a target, in order, and how many there are in all.
select id::text, (select count(*) from {schema}.jobs where wait = 'target' and target = :target::text)
from {schema}.jobs where wait = 'target' and target = :target::text order by seq limit :limit::integer
