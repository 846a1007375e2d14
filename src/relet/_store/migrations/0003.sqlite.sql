-- As on PostgreSQL, where a worker recognises a restored dump. A copy of a file cannot be told from a file that was
-- moved; `relet backup` pauses the queues of its copy.
-- oldest: 1

alter table {schema}.pulse add column tables text;
