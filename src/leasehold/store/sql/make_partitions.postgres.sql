-- make_partitions: for jobs whose ids were made between these moments.
select {schema}.make_partitions((to_timestamp(:first::float8) at time zone 'UTC')::date, (to_timestamp(:last::float8) at time zone 'UTC')::date)
