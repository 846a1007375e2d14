-- Create the partitions of today and the next days.
select {schema}.make_partitions(
    ({now} at time zone 'UTC')::date,
    (({now} + make_interval(days => :days::integer)) at time zone 'UTC')::date)
