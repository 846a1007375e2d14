-- Before jobs are deleted, store the ids of those that exist: a repeated enqueue whose answer was lost must not make
-- them again.
insert into {schema}.operations (id, verb, subject, at)
select f.id, 'delete', f.id, {now}
from (
    select id from {schema}.jobs where id in (select value from json_each(:ids))
    union all
    select id from {schema}.finished where id in (select value from json_each(:ids))
) f
where true
on conflict (id) do nothing;
