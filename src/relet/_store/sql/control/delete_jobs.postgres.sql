-- Delete jobs, locked by an earlier statement, and everything that belongs to them.
with given as materialized (
    select json_array_elements_text(:ids::text::json)::uuid as id
),
gone as (
    delete from {schema}.jobs where id = any(array(select id from given))
    returning id, target, holds or state = 'paused' and wait is not null as frees, watched, chain, unique_key,
              queue, group_key
),
over as (delete from {schema}.finished where id = any(array(select id from given)) returning id),
ended as (delete from {schema}.attempts where job = any(array(select id from given))),
stepped as (delete from {schema}.steps where job = any(array(select id from given))),
told as (delete from {schema}.signals where job = any(array(select id from given))),
unlinked as (delete from {schema}.dependencies where job = any(array(select id from given))),
untagged as (delete from {schema}.tags where job = any(array(select id from given))),
unlisted as (delete from {schema}.reruns where job = any(array(select id from given))),
unkeyed as (delete from {schema}.keys k using gone g where k.key = g.unique_key and k.job = g.id and k.until is null),
nudged as (
    insert into {schema}.nudges (kind, key)
    select 'target', target from gone where frees
    union all
    select 'chain', chain::text from gone where watched
),
nudged_groups as (
    insert into {schema}.group_nudges (queue, group_key)
    select distinct queue, group_key from gone
    where {group_limited}
)
select id::text from gone union all select id::text from over
