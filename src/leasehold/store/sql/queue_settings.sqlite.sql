-- queue_settings: what people have said of queues.
select queue, paused, max_running from queues order by queue;
