-- A job that still waits for a deleted job with one of these ids now waits for the new one: nudge the promoter.
insert into {schema}.nudges (kind, key)
select distinct 'chain', d.depends_on::text from {schema}.dependencies d
where d.depends_on = any(array(select json_array_elements_text(:ids::text::json)::uuid)) and d.state is null
