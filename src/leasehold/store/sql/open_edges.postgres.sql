-- open_edges: undecided dependencies of the jobs named, and on the chains named.
select e.job::text, e.blocker::text from {schema}.edges e
where e.job = any(array(select json_array_elements_text(:jobs::text::json)::uuid)) and e.state is null
union
select e.job::text, e.blocker::text from {schema}.edges e
where e.blocker = any(array(select json_array_elements_text(:chains::text::json)::uuid)) and e.state is null
