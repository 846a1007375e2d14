-- The object ids of the tables when a worker started last, and those that they have now. A restored dump has other
-- tables. pg_upgrade keeps the ids, and so does a failover.
select p.tables, (
    select string_agg(c.oid::text, ' ' order by c.relname)
    from pg_catalog.pg_class c
    where c.relnamespace = (select o.relnamespace from pg_catalog.pg_class o where o.oid = p.tableoid)
      and c.relname in ('attempts', 'dependencies', 'keys', 'pulse', 'queues', 'steps'))
from {schema}.pulse p
