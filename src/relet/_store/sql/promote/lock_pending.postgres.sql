-- Lock those of the jobs that can be locked at once and are still in line: since they were read, they may have been
-- paused, or delayed by replace. Skips rows that another transaction has locked. (Not `wait =`: the planner must not
-- read the whole line for a few ids.)
select id::text from {schema}.jobs
where id = any(array(select json_array_elements_text(:ids::text::json)::uuid)) and state = 'pending'
  and coalesce(wait, '') = 'target'
order by id
for update skip locked
