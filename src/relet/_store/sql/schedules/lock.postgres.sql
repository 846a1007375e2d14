-- Lock one schedule, before a later statement changes it.
select definition::text, extract(epoch from next_at)::float8, declared::text
from {schema}.schedules where name = :name::text for update
