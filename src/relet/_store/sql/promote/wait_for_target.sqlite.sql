-- Time or jobs no longer hold these up, their target does. They stand where their enqueue put them.
update {schema}.jobs set wait = 'target', waits = 0
where id in (select value from json_each(:ids)) and state = 'pending';
