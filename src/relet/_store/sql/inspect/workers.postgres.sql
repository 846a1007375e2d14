-- All that are there, or were until lately, and for how long each has been silent.
select name, host, pid, about::text, running, stopping, extract(epoch from started_at)::float8,
       extract(epoch from seen_at)::float8, extract(epoch from {now} - seen_at)::float8
from {schema}.workers order by name
