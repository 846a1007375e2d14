-- Delete the samples of other queues: they have no jobs.
with gone as materialized (
    select queue from {schema}.queue_samples
    where queue <> all(array(select json_array_elements_text(:queues::text::json)))
    order by queue
    for update
)
delete from {schema}.queue_samples where queue in (select queue from gone)
