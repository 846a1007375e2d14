-- The workers that run, or were lost recently, and for how many seconds each has been silent.
select name, host, pid, about, running, stopping, started_at, seen_at, {now} - seen_at
from {schema}.workers order by name;
