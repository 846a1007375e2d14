-- prune_finished: a batch of what has been over for long enough. Old ids first; whole partitions are dropped elsewhere.
with old as materialized (
    select id from {schema}.finished
    where id < {schema}.first_id({now} - make_interval(secs => :seconds::float8)) and finished_at < {now} - make_interval(secs => :seconds::float8)
    order by id
    limit :most::integer
    for update skip locked
)
delete from {schema}.finished f using old o where f.id = o.id
returning f.id::text
