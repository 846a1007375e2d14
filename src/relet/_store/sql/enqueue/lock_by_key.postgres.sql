-- Lock jobs in the order of their unique keys: a transaction of several enqueues that keeps to this order meets no
-- deadlock.
select j.id::text, j.state::text
from json_to_recordset(:batch::text::json) as b(id uuid, key text) join {schema}.jobs j on j.id = b.id
order by b.key collate "C"
for update of j
