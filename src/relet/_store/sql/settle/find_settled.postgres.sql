-- Those of the jobs that were settled under these leases: the reply was lost, not the lease.
with given as materialized (
    select b.id, b.token from json_to_recordset(:batch::text::json) as b(id uuid, token uuid)
)
select j.id::text, j.token::text, j.state::text
from {schema}.all_jobs j join given g on g.id = j.id and g.token = j.token
where j.id = any(array(select id from given)) and j.state <> 'running'
