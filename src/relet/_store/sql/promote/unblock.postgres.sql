-- Set how many dependencies these jobs still wait for. A pending job that has none left waits for its time.
with given as materialized (
    select b.id, b.waits, b.wait from json_to_recordset(:batch::text::json) as b(id uuid, waits integer, wait text)
)
update {schema}.jobs j
set waits = g.waits, wait = case when j.state = 'pending' then g.wait end
from given g
where j.id = g.id and j.id = any(array(select id from given))
