-- All counts since the store was created.
select 0::float8, queue, name, bucket, number from {schema}.stats where step = 0 order by queue
