-- renew: what is mine is renewed; absent is lost.
-- Then the strangers: running jobs of this worker that it does not know, from a claim whose answer was lost.
update {schema}.jobs
set expires_at = {now} + coalesce(lease, :lease)
where (id, token) in (select json_extract(value, '$.id'), json_extract(value, '$.token') from json_each(:batch))
  and state = 'running';

select j.id, j.token, g.value is not null, g.value is not null, j.request
from {schema}.jobs j left join json_each(:batch) g on json_extract(g.value, '$.id') = j.id and json_extract(g.value, '$.token') = j.token
where j.state = 'running' and (g.value is not null or j.worker = :worker);
