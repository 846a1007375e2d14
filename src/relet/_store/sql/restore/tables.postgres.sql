-- The object ids of the tables when a worker started last, and those that they have now. A restored dump has other
-- tables. pg_upgrade keeps the ids, and so does a failover. (The catalog is read by itself: an engine that spreads rows
-- does not join it with a table.)
with here as materialized (
    select string_agg(c.oid::text, ' ' order by c.relname) as tables
    from pg_catalog.pg_class c
    where c.relnamespace = to_regnamespace('{schema}')
      and c.relname in ('attempts', 'dependencies', 'keys', 'pulse', 'queues', 'steps')
)
select p.tables, h.tables from {schema}.pulse p cross join here h
