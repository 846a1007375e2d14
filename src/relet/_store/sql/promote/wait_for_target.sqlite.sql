-- These jobs wait for neither time nor other jobs, but for their target. Their position in line is that of their
-- enqueue.
update {schema}.jobs set wait = 'target', waits = 0
where id in (select value from json_each(:ids)) and state = 'pending';
