-- free: those of the jobs named that are pending.
select id from {schema}.jobs where id in (select value from json_each(:ids)) and state = 'pending';
