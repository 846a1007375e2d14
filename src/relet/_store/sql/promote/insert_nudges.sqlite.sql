-- Insert nudges, in the order of the batch.
insert into {schema}.nudges (kind, key, beyond)
select json_extract(value, '$.kind'), json_extract(value, '$.key'), json_extract(value, '$.beyond')
from json_each(:batch);
