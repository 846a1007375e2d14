-- The jobs in line at a target, in order, and how many there are in all.
select id, (select count(*) from {schema}.jobs where wait = 'target' and target = :target)
from {schema}.jobs where wait = 'target' and target = :target order by seq limit :limit;
