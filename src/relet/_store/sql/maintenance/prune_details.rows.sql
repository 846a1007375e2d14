-- Delete up to a number of rows of each kind that belong to jobs about to be deleted. Returns whether more may be left.
with chosen as materialized (
    select json_array_elements_text(:ids::text::json)::uuid as id
),
ended as (
    delete from {schema}.attempts where (job, version) in (
        select job, version from {schema}.attempts where job = any(array(select id from chosen))
        limit :limit::integer)
    returning 1
),
stepped as (
    delete from {schema}.steps where (job, kind, name) in (
        select job, kind, name from {schema}.steps where job = any(array(select id from chosen))
        limit :limit::integer)
    returning 1
),
told as (
    delete from {schema}.signals where (job, name) in (
        select job, name from {schema}.signals where job = any(array(select id from chosen))
        limit :limit::integer)
    returning 1
),
linked as (
    delete from {schema}.dependencies where (job, depends_on) in (
        select job, depends_on from {schema}.dependencies where job = any(array(select id from chosen))
        limit :limit::integer)
    returning 1
),
untagged as (
    delete from {schema}.tags where (tag, job) in (
        select tag, job from {schema}.tags where job = any(array(select id from chosen))
        limit :limit::integer)
    returning 1
),
unlisted as (delete from {schema}.reruns where job = any(array(select id from chosen)))
select greatest((select count(*) from ended), (select count(*) from stepped), (select count(*) from told),
                (select count(*) from linked), (select count(*) from untagged)) >= :limit::integer
