-- The limits by group of all queues.
select queue, group_key, max_running from {schema}.group_limits order by queue, group_key
