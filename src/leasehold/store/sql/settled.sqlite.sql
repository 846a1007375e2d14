-- settled: was it this very lease that settled these jobs? Then the answer was lost, not the lease.
select j.id, j.token, j.state
from json_each(:batch) g cross join {schema}.all_jobs j
where j.id = json_extract(g.value, '$.id') and j.token = json_extract(g.value, '$.token') and j.state <> 'running';
