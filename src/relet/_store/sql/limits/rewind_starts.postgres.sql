-- The clock was set back: count starts that lie after this moment at it. The limits are locked.
insert into {schema}.starts (queue, group_key, at, number)
select s.queue, s.group_key, to_timestamp(:moment::float8), sum(s.number)::integer from {schema}.starts s
where s.queue = any(array(select json_array_elements_text(:queues::text::json)))
  and s.at > to_timestamp(:moment::float8)
group by s.queue, s.group_key
on conflict (queue, group_key, at) do update set number = starts.number + excluded.number
