-- drop_revived: nothing can have come between our look and our insert here. But whoever still waits for a job of this id
-- that was deleted waits for the new one.
insert into {schema}.nudges (kind, key)
select distinct 'chain', blocker from {schema}.edges
where blocker in (select value from json_each(:ids)) and state is null;
