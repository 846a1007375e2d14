-- Transfer the keys of running jobs to the jobs that follow them. A settle of such a job skips a key that is locked
-- here.
with mine as materialized (
    select k.key, g.job
    from json_to_recordset(:batch::text::json) as g(key text, holder uuid, job uuid)
    join {schema}.keys k on k.key = g.key and k.job = g.holder and k.until is null
    order by k.key
    for update of k
)
update {schema}.keys k set job = m.job from mine m where k.key = m.key returning k.key
