-- Lock a job, before an operator's action is decided in a later statement. No row: it is over, or does not exist.
select j.id::text, j.state::text, j.wait, j.attempt, j.losses, j.target, j.holds, j.waits, j.run_at > {now},
       j.unique_key, j.windowed, j.chain::text, j.task
from {schema}.jobs j
where j.id = any(array(select json_array_elements_text(:ids::text::json)::uuid))
order by j.id
for update
