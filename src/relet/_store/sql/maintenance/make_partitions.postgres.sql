-- Of today and of the days to come.
select {schema}.make_partitions(({now} at time zone 'UTC')::date, (({now} + make_interval(days => :days::integer)) at time zone 'UTC')::date)
