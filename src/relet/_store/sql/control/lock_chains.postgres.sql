-- Lock the job of each chain that is not over; the columns are those of `lock_job`. No row: the chain is over, or was
-- continued with another job while this statement waited; the next statement sees that job.
with live as materialized (
    select id from {schema}.jobs
    where id = any(array(select json_array_elements_text(:chains::text::json)::uuid))
    union all
    select id from {schema}.jobs
    where chain = any(array(select json_array_elements_text(:chains::text::json)::uuid)) and "position" > 0
)
select j.id::text, j.state::text, j.wait, j.attempt, j.losses, j.target, j.holds, j.waits, j.run_at > {now},
       j.unique_key, j.windowed, j.chain::text, j.task
from {schema}.jobs j
where j.id = any(array(select id from live))
order by j.id
for update
