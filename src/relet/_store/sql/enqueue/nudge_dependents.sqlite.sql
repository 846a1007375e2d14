-- A job that still waits for a deleted job of such an id waits for the new one.
insert into {schema}.nudges (kind, key)
select distinct 'chain', blocker from {schema}.edges
where blocker in (select value from json_each(:ids)) and state is null;
