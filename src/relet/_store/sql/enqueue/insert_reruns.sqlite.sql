-- Record of which jobs these new ones are reruns.
insert or ignore into {schema}.reruns (job, rerun_of)
select json_extract(value, '$.job'), json_extract(value, '$.rerun_of') from json_each(:batch);
