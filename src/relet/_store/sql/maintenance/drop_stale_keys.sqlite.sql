-- Delete those of the keys whose jobs are not live.
delete from {schema}.keys
where (key, job) in (select json_extract(value, '$.key'), json_extract(value, '$.job') from json_each(:batch))
  and not exists (select 1 from {schema}.jobs j where j.id = {schema}.keys.job)
returning key;
