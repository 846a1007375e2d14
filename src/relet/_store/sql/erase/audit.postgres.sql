-- Remove the details of audited actions that name this value, which is a JSON text. Reads some of the actions after
-- `beyond`, and returns the last of them, and how many it has read.
with seen as materialized (
    select seq from {schema}.audit where seq > :beyond::bigint order by seq limit :limit::integer
),
cleared as (
    update {schema}.audit set detail = null
    where seq > :beyond::bigint and seq <= (select max(seq) from seen) and position(:value::text in detail::text) > 0
)
select max(seq), count(*) from seen
