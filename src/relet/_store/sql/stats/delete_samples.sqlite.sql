-- Delete the samples of other queues: they have no jobs.
delete from {schema}.queue_samples where queue not in (select value from json_each(:queues));
