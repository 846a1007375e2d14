-- The leases that are still valid, and the requests to their owners. Changes nothing.
with given as materialized (
    select b.id, b.token from json_to_recordset(:batch::text::json) as b(id uuid, token uuid)
)
select j.id::text, j.token::text, j.request from {schema}.jobs j
where j.id = any(array(select id from given)) and j.token = any(array(select token from given)) and j.state = 'running'
  and (j.id, j.token) in (select id, token from given)
