-- Those of these queues, whose limits are locked, that are older than any of their rates asks for.
with bounds as materialized (
    select r.queue, {now} - make_interval(secs => max(r.per)) as bound from {schema}.rates r
    where r.queue = any(array(select json_array_elements_text(:queues::text::json)))
    group by r.queue
)
delete from {schema}.starts s using bounds b where s.queue = b.queue and s.at <= b.bound
