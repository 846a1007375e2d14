-- Lock the job of each chain that is not over. No row: the chain is over, or was continued with another job while this
-- statement waited; the next statement sees that job.
with live as materialized (
    select id from {schema}.jobs
    where id = any(array(select json_array_elements_text(:chains::text::json)::uuid))
    union all
    select id from {schema}.jobs
    where chain = any(array(select json_array_elements_text(:chains::text::json)::uuid)) and "position" > 0
)
select {locked}
from {schema}.jobs j
where j.id = any(array(select id from live))
order by j.id
for update
