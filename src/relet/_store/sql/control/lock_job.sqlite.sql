-- Read a job, before an operator's action is decided. No row: it is over, or does not exist.
select j.id, j.state, j.wait, j.attempt, j.losses, j.target, j.holds, j.waits, j.run_at > {now}, j.unique_key,
       j.windowed, j.chain, j.task
from {schema}.jobs j
where j.id in (select value from json_each(:ids))
order by j.id;
