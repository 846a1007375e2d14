-- The objects in the schema: kind, name, whether an index can be used, and the table that it belongs to.
select case when c.relkind in ('r', 'p') then 'table' when c.relkind in ('i', 'I') then 'index'
            when c.relkind = 'v' then 'view' else 'sequence' end,
       c.relname::text, coalesce(i.indisvalid and i.indisready, true), t.relname::text
from pg_class c
left join pg_index i on i.indexrelid = c.oid
left join pg_class t on t.oid = i.indrelid
where c.relnamespace = to_regnamespace('{schema}') and c.relkind in ('r', 'p', 'i', 'I', 'v', 'S')
union all
select 'function', p.proname::text, true, null from pg_proc p where p.pronamespace = to_regnamespace('{schema}')
