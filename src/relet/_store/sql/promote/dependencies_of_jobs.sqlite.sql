-- The undecided dependencies of these jobs, after those read before. Reads one job after another in the order of the
-- index, and stops at the limit.
select d.job, d.depends_on
from json_each(:batch) g cross join {schema}.dependencies d
where d.job = json_extract(g.value, '$.key') and d.depends_on > coalesce(json_extract(g.value, '$.beyond'), '')
  and +d.state is null
limit :limit;
