-- Delete starts that are older than any rate of these queues counts. The limits are locked.
with bounds as materialized (
    select r.queue, {now} - make_interval(secs => max(r.per)) as bound from {schema}.rates r
    where r.queue = any(array(select json_array_elements_text(:queues::text::json)))
    group by r.queue
)
delete from {schema}.starts s using bounds b where s.queue = b.queue and s.at <= b.bound
