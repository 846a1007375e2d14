-- Insert the chains that each new job waits for.
insert into {schema}.dependencies (job, depends_on, position)
select json_extract(value, '$.job'), json_extract(value, '$.depends_on'), json_extract(value, '$.position')
from json_each(:batch)
where true
on conflict do nothing;
