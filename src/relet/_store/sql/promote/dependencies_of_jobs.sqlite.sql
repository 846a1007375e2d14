-- The undecided dependencies of these jobs, after those read before. Reads one job after another in the order of the
-- index, and stops at the limit.
select e.job, e.blocker
from json_each(:batch) g cross join {schema}.edges e
where e.job = json_extract(g.value, '$.key') and e.blocker > coalesce(json_extract(g.value, '$.beyond'), '')
  and +e.state is null
limit :most;
