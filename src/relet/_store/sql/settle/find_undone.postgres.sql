-- Those of the attempts whose claims or ends, which it had acknowledged, the database has lost: it is a standby that
-- lacked commits when it was promoted, or was restored. Without a state: there is no such job.
with given as materialized (
    select b.id, b.token, b.version
    from json_to_recordset(:batch::text::json) as b(id uuid, token uuid, version integer)
),
found as materialized (
    select id, token, version, state from {schema}.all_jobs where id = any(array(select id from given))
)
select g.id::text, g.token::text, f.state::text
from given g left join found f on f.id = g.id
where f.id is null or f.version < g.version
   or (f.version = g.version and (f.token <> g.token or f.state = 'running'))
