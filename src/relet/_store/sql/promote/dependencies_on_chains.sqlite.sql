-- The jobs that wait for these chains, undecided, after those read before. Reads one chain after another in the order
-- of the index, and stops at the limit.
select d.job, d.depends_on
from json_each(:batch) g cross join {schema}.dependencies d indexed by {schema}.dependencies_open
where d.depends_on = json_extract(g.value, '$.key') and d.job > coalesce(json_extract(g.value, '$.beyond'), '')
  and d.state is null
limit :limit;
