-- What people have said of queues.
select queue, paused, max_running, fair from {schema}.queues order by queue
