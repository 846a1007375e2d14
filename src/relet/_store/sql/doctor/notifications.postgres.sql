-- How full the queue of notifications is, from 0 to 1.
select pg_notification_queue_usage()::float8
