-- Remove payloads, results, errors, contexts, steps and signals of jobs that are over; their history stays.
delete from {schema}.steps where job in (select value from json_each(:ids));

delete from {schema}.signals where job in (select value from json_each(:ids));

update {schema}.attempts set error = null, error_type = null
where job in (select value from json_each(:ids)) and error is not null;

update {schema}.finished set payload = 'null', result = null, error = null, error_type = null, context = null
where id in (select value from json_each(:ids));
