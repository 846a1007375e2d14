-- The jobs that wait for these chains, undecided, after those read before. Reads one chain after another in the order
-- of the index, and stops at the limit.
select e.job, e.blocker
from json_each(:batch) g cross join {schema}.edges e indexed by {schema}.edges_open
where e.blocker = json_extract(g.value, '$.key') and e.job > coalesce(json_extract(g.value, '$.beyond'), '')
  and e.state is null
limit :most;
