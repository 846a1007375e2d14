-- Delete answers that no retry will ask for any more.
with old as materialized (
    select id from {schema}.operations where at < {now} - make_interval(secs => :seconds::float8)
    order by at limit :limit::integer for update skip locked
)
delete from {schema}.operations p using old o where p.id = o.id returning p.id::text
