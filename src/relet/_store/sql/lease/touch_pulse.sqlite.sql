-- Record that the store is reachable and leases can be renewed. After a gap, after a wait for the file's lock, and
-- after the clock was set back, live workers get time to renew before leases are reaped. Not after a gap in which all
-- leases were taken or renewed: the store was idle. Faults that follow each other closely put off reaping again and
-- again. So the time without faults is counted, too: once there was enough of it, the leases that had expired before
-- may be reaped.
with due as materialized (
    select touched_at, uptime, touched_at between {now} - :gap and {now} + 1 as is_steady,
           touched_at > {now} + 1 as is_back,
           touched_at < {now} - :gap and not exists (
               select 1 from {schema}.jobs j
               where j.expires_at is not null and coalesce(j.renewed_at, j.started_at) <= {now} - :gap
           ) as was_idle
    from {schema}.pulse
    where touched_at not between {now} - :every and {now} + 1 or :locked
),
counted as materialized (
    select is_steady, is_back, was_idle,
           case when is_back then 0
                when is_steady then uptime + max({now} - touched_at - :waited, 0)
                else uptime end as total
    from due
)
update {schema}.pulse
set grace_until = case when not c.is_steady and not c.was_idle then {now} + :grace
                       when :locked then max(grace_until, {now} + :short)
                       else grace_until end,
    touched_at = {now},
    period_from = case when c.is_back or c.total >= :enough then {now} else period_from end,
    uptime = case when c.total >= :enough then 0 else c.total end,
    reap_before = case when c.is_back then 0 when c.total >= :enough then period_from else reap_before end
from counted c
returning max(grace_until - {now}, 0);
