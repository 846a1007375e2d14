-- settled: was it this very lease that settled these jobs? Then the answer was lost, not the lease.
select b.id::text
from json_to_recordset(:batch::text::json) as b(id uuid, token uuid)
join {schema}.all_jobs j on j.id = b.id and j.token = b.token
where j.state <> 'running'
