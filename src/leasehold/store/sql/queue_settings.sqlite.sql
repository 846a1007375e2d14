-- queue_settings: what people have said of queues.
select queue, paused, max_running from {schema}.queues order by queue;
