-- Store the progress that handlers reported, guarded by the lease.
update {schema}.jobs as j
set progress = (select json_extract(g.value, '$.progress') from json_each(:batch) g
                where json_extract(g.value, '$.id') = j.id)
where (j.id, j.token) in (select json_extract(value, '$.id'), json_extract(value, '$.token') from json_each(:batch))
  and j.state = 'running'
returning id, token;
