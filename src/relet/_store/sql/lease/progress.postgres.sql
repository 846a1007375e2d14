-- Store the progress that handlers reported, guarded by the lease. Skips locked rows. Returns the jobs that were
-- updated.
with given as materialized (
    select b.id, b.token, b.progress from json_to_recordset(:batch::text::json) as b(id uuid, token uuid, progress text)
),
mine as materialized (
    select j.id, j.token from {schema}.jobs j
    where j.id = any(array(select id from given)) and j.token = any(array(select token from given))
      and j.state = 'running'
    order by j.id
    for update skip locked
)
update {schema}.jobs j set progress = g.progress::json
from given g join mine m on m.id = g.id and m.token = g.token
where j.id = m.id
returning j.id::text, j.token::text
