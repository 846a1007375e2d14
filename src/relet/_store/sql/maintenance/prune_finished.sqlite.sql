-- Delete jobs that are over.
delete from {schema}.finished where id in (select value from json_each(:ids)) returning id;
