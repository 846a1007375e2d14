-- The jobs that this owner is about to settle, guarded by the lease, with the columns that the decision needs.
select {running}, j.token, j.chain
from json_each(:batch) g cross join {schema}.jobs j
where j.id = json_extract(g.value, '$.id') and j.token = json_extract(g.value, '$.token') and j.state = 'running';
