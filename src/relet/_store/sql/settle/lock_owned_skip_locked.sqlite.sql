-- Like `lock_owned`. A handler's own transaction would have kept this one from starting.
select {running}, j.token, j.chain
from json_each(:batch) g cross join {schema}.jobs j
where j.id = json_extract(g.value, '$.id') and j.token = json_extract(g.value, '$.token') and j.state = 'running';
