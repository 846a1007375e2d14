-- dependents: those of the jobs named that still wait for others; and the chains of those that went on with one.
select id, 1, waits, policy, case when position > 0 then chain end from {schema}.jobs where id in (select value from json_each(:ids)) and waits > 0;
