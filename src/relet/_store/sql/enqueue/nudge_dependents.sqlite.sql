-- A job that still waits for a deleted job with one of these ids now waits for the new one: nudge the promoter.
insert into {schema}.nudges (kind, key)
select distinct 'chain', depends_on from {schema}.dependencies
where depends_on in (select value from json_each(:ids)) and state is null;
