-- Take the first of these keys. Returns the job that has it now: the new job, unless another one holds it; or null, if
-- the key was freed meanwhile. The caller repeats this for the others: a transaction that waits for a key that is being
-- taken has locked only keys that sort before it. A key is void if its window or its job is over, or if its holder is
-- the predecessor. It is taken only from the holder that was found void: another may have taken it since.
insert into {schema}.keys (key, job, until)
select g.key, g.job, {now} + (g."window" * interval '1 second')
from (
    select b.* from json_to_recordset(:batch::text::json) as b(key text, job uuid, heir_of uuid, "window" float8)
    order by b.key
    limit 1
) g
on conflict (key) do nothing;
with given as materialized (
    select g.key, g.job, g.heir_of, {now} + (g."window" * interval '1 second') as until
    from (
        select b.* from json_to_recordset(:batch::text::json) as b(key text, job uuid, heir_of uuid, "window" float8)
        order by b.key
        limit 1
    ) g
),
void as materialized (
    select k.key, k.job as holder, g.job, case when k.job = g.job then k.until else g.until end as until
    from given g join {schema}.keys k on k.key = g.key
    where k.job = g.job or k.job is not distinct from g.heir_of or k.until <= {now}
       or k.until is null and not exists (select 1 from {schema}.jobs j where j.id = k.job and j.state <> 'failed')
)
update {schema}.keys k set job = v.job, until = v.until
from void v
where k.key = v.key and k.job = v.holder;
select g.key, k.job::text
from (
    select b.* from json_to_recordset(:batch::text::json) as b(key text, job uuid, heir_of uuid, "window" float8)
    order by b.key
    limit 1
) g
left join {schema}.keys k on k.key = g.key
