-- How many jobs of each group may run at once, in these queues.
select queue, group_key, max_running from {schema}.group_limits
where queue = any(array(select json_array_elements_text(:queues::text::json)))
