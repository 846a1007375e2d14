-- Those of the jobs that were settled under these leases: the reply was lost, not the lease. Reads each table by its
-- key: the view of both would be read from end to end.
select j.id, j.token, j.state
from json_each(:batch) g cross join {schema}.jobs j
where j.id = json_extract(g.value, '$.id') and j.token = json_extract(g.value, '$.token') and j.state <> 'running'
union all
select f.id, f.token, f.state
from json_each(:batch) g cross join {schema}.finished f
where f.id = json_extract(g.value, '$.id') and f.token = json_extract(g.value, '$.token');
