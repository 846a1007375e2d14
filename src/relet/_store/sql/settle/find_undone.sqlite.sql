-- Those of the attempts whose claims or ends, which it had acknowledged, the database has lost: the file was restored.
-- Without a state: there is no such job. Reads each table by its key.
with given as materialized (
    select json_extract(value, '$.id') as id, json_extract(value, '$.token') as token,
        json_extract(value, '$.version') as version
    from json_each(:batch)
),
found as materialized (
    select j.id, j.token, j.version, j.state from given g cross join {schema}.jobs j on j.id = g.id
    union all
    select f.id, f.token, f.version, f.state from given g cross join {schema}.finished f on f.id = g.id
)
select g.id, g.token, f.state
from given g left join found f on f.id = g.id
where f.id is null or f.version < g.version
   or (f.version = g.version and (f.token <> g.token or f.state = 'running'));
