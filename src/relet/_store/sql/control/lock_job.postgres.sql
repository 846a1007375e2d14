-- Lock a job, before an operator's action is decided in a later statement. No row: it is over, or does not exist.
select {locked}
from {schema}.jobs j
where j.id = any(array(select json_array_elements_text(:ids::text::json)::uuid))
order by j.id
for update
