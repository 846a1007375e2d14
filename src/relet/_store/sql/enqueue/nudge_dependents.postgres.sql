-- A job that still waits for a deleted job with one of these ids now waits for the new one: nudge the promoter.
insert into {schema}.nudges (kind, key)
select distinct 'chain', e.blocker::text from {schema}.edges e
where e.blocker = any(array(select json_array_elements_text(:ids::text::json)::uuid)) and e.state is null
