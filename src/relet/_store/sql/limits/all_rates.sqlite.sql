-- The rates of all queues.
select queue, group_key, rate, per from {schema}.rates order by queue, group_key;
