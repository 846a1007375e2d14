-- The job of each chain that is not over; the columns are those of `lock_job`. No row: the chain is over.
select j.id, j.state, j.wait, j.attempt, j.losses, j.target, j.holds, j.waits, j.run_at > {now}, j.unique_key,
       j.windowed, j.chain, j.task
from {schema}.jobs j
where j.id in (select value from json_each(:chains))
   or j.position > 0 and j.chain in (select value from json_each(:chains))
order by j.id;
