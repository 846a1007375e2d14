-- The jobs that hold these keys, and whether a key is kept only by a window that has ended.
select key, job, coalesce(until <= {now}, 0) from {schema}.keys where key in (select value from json_each(:keys));
