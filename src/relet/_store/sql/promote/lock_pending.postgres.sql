-- Those of the jobs named that can be locked at once, and still stand in line then: since they were looked up, they may
-- have been paused, or put off by replace. The others are somebody's just now. (Not `wait =`: the planner must not read the whole
-- line for a few ids.)
select id::text from {schema}.jobs
where id = any(array(select json_array_elements_text(:ids::text::json)::uuid)) and state = 'pending' and coalesce(wait, '') = 'target'
order by id
for update skip locked
