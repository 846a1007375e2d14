-- Those of the jobs that are still in line.
select id from {schema}.jobs where id in (select value from json_each(:ids)) and state = 'pending' and wait = 'target';
