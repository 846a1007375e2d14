-- Create the partition of the day on which an id was made.
select {schema}.make_partitions(day, day)
from (select (to_timestamp(:moment::float8) at time zone 'UTC')::date as day) d
