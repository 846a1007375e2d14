-- The last of the first old counts in steps of this length, in the order of the primary key.
select extract(epoch from at)::float8, queue, name, bucket from (
    select at, queue, name, bucket from {schema}.stats
    where step = :step::integer and at < to_timestamp(:before::float8)
    order by at, queue, name, bucket
    limit :limit::integer
) old
order by at desc, queue desc, name desc, bucket desc
limit 1
