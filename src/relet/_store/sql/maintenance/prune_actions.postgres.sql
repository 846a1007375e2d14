-- Delete old audit entries, the oldest first.
with old as (
    select seq, at from {schema}.audit order by seq limit :limit::integer
)
delete from {schema}.audit where seq in (select seq from old where at < {now} - make_interval(secs => :seconds::float8))
returning seq
