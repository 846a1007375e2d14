-- Remove what other tables hold of these deleted jobs: copies of results, keys, details of audited actions, answers.
update {schema}.dependencies set result = null
where depends_on in (select value from json_each(:chains)) and result is not null;

delete from {schema}.keys
where key in (select value from json_each(:keys)) and job in (select value from json_each(:ids));

delete from {schema}.operations where subject in (select value from json_each(:ids));

update {schema}.audit set detail = null where subject in (select value from json_each(:ids));
