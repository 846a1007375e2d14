-- The last of the first old counts in steps of this length, in the order of the primary key.
select at, queue, name, bucket from (
    select at, queue, name, bucket from {schema}.stats
    where step = :step and at < :before
    order by at, queue, name, bucket
    limit :limit
)
order by at desc, queue desc, name desc, bucket desc
limit 1;
