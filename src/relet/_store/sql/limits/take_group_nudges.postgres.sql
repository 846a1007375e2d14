-- Move nudges about groups to the groups that are ready, for a queue whose limits are locked. Returns how many.
with taken as (
    delete from {schema}.group_nudges
    where queue = :queue::text and id = any(array(
        select n.id from {schema}.group_nudges n where n.queue = :queue::text order by n.id limit :limit::integer))
    returning group_key
),
added as (
    insert into {schema}.ready_groups (queue, group_key) select distinct :queue::text, group_key from taken
    on conflict do nothing
)
select count(*) from taken
