-- Delete jobs and everything that belongs to them.
insert into {schema}.nudges (kind, key)
select 'target', target from {schema}.jobs where id in (select value from json_each(:ids))
  and (holds or state = 'paused' and wait is not null)
union all
select 'chain', chain from {schema}.jobs where id in (select value from json_each(:ids)) and watched;

delete from {schema}.attempts where job in (select value from json_each(:ids));

delete from {schema}.steps where job in (select value from json_each(:ids));

delete from {schema}.signals where job in (select value from json_each(:ids));

delete from {schema}.dependencies where job in (select value from json_each(:ids));

delete from {schema}.tags where job in (select value from json_each(:ids));

delete from {schema}.reruns where job in (select value from json_each(:ids));

delete from {schema}.keys
where until is null and (key, job) in (
    select unique_key, id from {schema}.jobs where id in (select value from json_each(:ids)));

delete from {schema}.finished where id in (select value from json_each(:ids));

delete from {schema}.jobs where id in (select value from json_each(:ids));
