-- dependents: those of the jobs named that still wait for others.
select id, 1, waits, policy from {schema}.jobs where id in (select value from json_each(:ids)) and waits > 0;
