-- rewind_starts: starts that lie in the future, as the clock was put back, count from now on. The limits are locked.
with gone as (
    delete from {schema}.starts
    where queue = any(array(select json_array_elements_text(:queues::text::json))) and at > {now}
    returning queue, key, number
)
insert into {schema}.starts (queue, key, at, number) select queue, key, {now}, sum(number)::integer from gone group by queue, key
on conflict (queue, key, at) do update set number = starts.number + excluded.number
