-- Everything that was ever counted.
select 0.0, queue, name, bucket, number from {schema}.stats where step = 0 order by queue;
