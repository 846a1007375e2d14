-- Pending -> queued, for rows that an earlier statement has locked, in the order of the ids. (The array: without
-- statistics the planner would join by reading the whole table.)
with given as materialized (
    select g.id::uuid as id, nextval('{schema}.job_seq') as seq
    from (select value as id from json_array_elements_text(:ids::text::json) with ordinality order by ordinality) g
),
promoted as (
    update {schema}.jobs j
    set state = 'queued', wait = null, waits = 0, holds = j.target is not null, seq = g.seq
    from given g
    where j.id = g.id and j.id = any(array(select id from given)) and j.state = 'pending'
    returning j.id, j.queue, j.group_key
),
nudged_groups as (
    insert into {schema}.group_nudges (queue, group_key)
    select distinct queue, group_key from promoted
    where {group_limited}
)
select id::text from promoted
