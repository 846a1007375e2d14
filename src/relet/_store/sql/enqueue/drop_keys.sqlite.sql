-- Free the keys that were taken for jobs that will not be stored.
delete from {schema}.keys
where (key, job) in (select json_extract(value, '$.key'), json_extract(value, '$.job') from json_each(:batch));
