-- Which leases still hold, and what has been asked of them. Changes nothing.
select id, token, request from {schema}.jobs
where (id, token) in (select json_extract(value, '$.id'), json_extract(value, '$.token') from json_each(:batch))
  and state = 'running';
