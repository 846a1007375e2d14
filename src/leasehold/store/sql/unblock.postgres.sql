-- unblock: so many fewer to wait for. A pending job that has none left waits for something else, or for nothing: then for now.
update {schema}.jobs j
set waits = b.waits, wait = case when j.state = 'pending' then b.wait end
from json_to_recordset(:batch::text::json) as b(id uuid, waits integer, wait text)
where j.id = b.id
