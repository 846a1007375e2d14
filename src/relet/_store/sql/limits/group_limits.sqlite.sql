-- How many jobs of each group may run at once, in these queues.
select queue, group_key, max_running from {schema}.group_limits where queue in (select value from json_each(:queues));
