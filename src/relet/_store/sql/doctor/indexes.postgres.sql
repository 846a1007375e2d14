-- Each index: its table, its size and entries as of the last vacuum, and the width of an entry.
select c.relname::text, t.relname::text, c.relpages::bigint * current_setting('block_size')::bigint,
       c.reltuples::float8,
       (select sum(p.avg_width)::float8 from pg_attribute a
        join pg_stats p on p.schemaname = n.nspname and p.tablename = t.relname and p.attname = a.attname
        where a.attrelid = c.oid)
from pg_class c
join pg_namespace n on n.oid = c.relnamespace
join pg_index i on i.indexrelid = c.oid
join pg_class t on t.oid = i.indrelid
where c.relnamespace = to_regnamespace('{schema}') and c.relkind = 'i' and c.relpages >= :pages::integer
order by c.relpages desc
limit 100
