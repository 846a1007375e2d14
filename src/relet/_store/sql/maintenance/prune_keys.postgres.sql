-- Delete keys whose windows have ended.
with old as materialized (
    select key from {schema}.keys where until <= {now} order by key limit :limit::integer for update skip locked
)
delete from {schema}.keys k using old o where k.key = o.key returning k.key
