-- The workers that run, or were lost recently, and for how many seconds each has been silent.
select name, host, pid, about::text, running, stopping, extract(epoch from started_at)::float8,
       extract(epoch from seen_at)::float8, extract(epoch from {now} - seen_at)::float8
from {schema}.workers order by name
