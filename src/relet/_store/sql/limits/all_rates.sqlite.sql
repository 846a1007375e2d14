-- The rates of all queues.
select queue, key, rate, per from {schema}.rates order by queue, key;
