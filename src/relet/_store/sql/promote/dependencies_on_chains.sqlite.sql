-- Who waits for the chains named, undecided, beyond whom was looked at. Of one chain after another, in the
-- order of the index, and no more than are wanted: the loop over the chains stops there.
select e.job, e.blocker
from json_each(:batch) g cross join {schema}.edges e indexed by {schema}.edges_open
where e.blocker = json_extract(g.value, '$.key') and e.job > coalesce(json_extract(g.value, '$.beyond'), '')
  and e.state is null
limit :most;
