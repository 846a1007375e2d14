-- Each table: live and dead rows, seconds since the last vacuum of any kind and since the last autovacuum; its size as
-- of the last vacuum, the width of a row, and its storage parameters. Takes no lock on a table: the sizes are those
-- that vacuum recorded. Counts are lost when a server crashes.
select c.relname::text, c.relispartition,
       case when s.n_live_tup + s.n_dead_tup > 0 then s.n_live_tup else greatest(c.reltuples, 0)::bigint end,
       coalesce(s.n_dead_tup, 0),
       extract(epoch from statement_timestamp() - greatest(s.last_vacuum, s.last_autovacuum))::float8,
       extract(epoch from statement_timestamp() - s.last_autovacuum)::float8,
       c.relpages::bigint * current_setting('block_size')::bigint,
       (select sum(p.avg_width)::float8 from pg_stats p
        where p.schemaname = n.nspname and p.tablename = c.relname),
       coalesce(array_to_json(c.reloptions)::text, '[]')
from pg_class c
join pg_namespace n on n.oid = c.relnamespace
left join pg_stat_user_tables s on s.relid = c.oid
where c.relnamespace = to_regnamespace('{schema}') and c.relkind in ('r', 'p')
order by c.relname
