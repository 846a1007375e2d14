-- The leases that are still valid, and the requests to their owners. Changes nothing.
select id, token, request from {schema}.jobs
where (id, token) in (select json_extract(value, '$.id'), json_extract(value, '$.token') from json_each(:batch))
  and state = 'running';
