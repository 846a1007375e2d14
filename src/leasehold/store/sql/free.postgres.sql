-- free: those of the pending jobs named that can be locked at once; the others are somebody's just now.
select id::text from {schema}.jobs
where id = any(array(select json_array_elements_text(:ids::text::json)::uuid)) and state = 'pending'
order by id
for update skip locked
