-- All that are there, or were until lately, and for how long each has been silent.
select name, host, pid, about, running, stopping, started_at, seen_at, {now} - seen_at
from {schema}.workers order by name;
