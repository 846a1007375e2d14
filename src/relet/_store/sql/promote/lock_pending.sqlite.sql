-- Those of the jobs named that stand in line.
select id from {schema}.jobs where id in (select value from json_each(:ids)) and state = 'pending' and wait = 'target';
