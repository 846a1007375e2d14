-- The settings of queues.
select queue, paused, max_running, fair from {schema}.queues order by queue;
