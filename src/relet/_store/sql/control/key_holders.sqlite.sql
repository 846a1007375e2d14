-- Who has these keys, and whether only a window is left of that, which is over.
select key, job, coalesce(until <= {now}, 0) from {schema}.keys where key in (select value from json_each(:keys));
