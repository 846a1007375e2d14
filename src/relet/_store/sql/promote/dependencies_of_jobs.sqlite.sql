-- What the jobs named wait for, undecided, beyond what was looked at. Of one job after another, in the order
-- of the index, and no more than is wanted: the loop over the jobs stops there.
select e.job, e.blocker
from json_each(:batch) g cross join {schema}.edges e
where e.job = json_extract(g.value, '$.key') and e.blocker > coalesce(json_extract(g.value, '$.beyond'), '')
  and +e.state is null
limit :most;
