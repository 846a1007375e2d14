-- Lock schedules that are due, unless another worker has locked them; and those whose next tick was decided at a time
-- that now lies in the future, because the clock was set back.
select name, definition::text, extract(epoch from next_at)::float8, extract(epoch from {now})::float8,
       moved_at > {now} + interval '1 second'
from {schema}.schedules
where not paused and (next_at <= {now} or moved_at > {now} + interval '1 second')
  and task = any(array(select json_array_elements_text(:tasks::text::json)))
  and definition::text <> all(array(select json_array_elements_text(:without::text::json)))
order by next_at, name
limit :limit::integer
for update skip locked
