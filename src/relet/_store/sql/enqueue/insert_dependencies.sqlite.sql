-- Insert the chains that each new job waits for.
insert into {schema}.edges (job, blocker, position)
select json_extract(value, '$.job'), json_extract(value, '$.blocker'), json_extract(value, '$.position')
from json_each(:batch)
where true
on conflict do nothing;
