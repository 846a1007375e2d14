-- Record that the store is reachable and leases can be renewed. After a gap, after a wait for the table's lock, and
-- after the clock was set back, live workers get time to renew before leases are reaped. Not after a gap in which all
-- leases were taken or renewed: the store was idle. Faults that follow each other closely put off reaping again and
-- again. So the time without faults is counted, too: once there was enough of it, the leases that had expired before
-- may be reaped.
with moments as materialized (
    select {now} as moment, {now} - make_interval(secs => :gap::float8) as gap,
           {now} - make_interval(secs => :every::float8) as every,
           {now} + interval '1 second' as ahead, {now} + make_interval(secs => :grace::float8) as grace,
           {now} + make_interval(secs => :short::float8) as short
),
due as materialized (
    select m.*, p.touched_at, p.grace_until, p.uptime,
           p.touched_at between m.gap and m.ahead as is_steady, p.touched_at > m.ahead as is_back,
           p.touched_at < m.gap and not exists (
               select from {schema}.jobs j
               where j.expires_at is not null and coalesce(j.renewed_at, j.started_at) <= m.gap
           ) as was_idle
    from {schema}.pulse p, moments m
    where p.touched_at not between m.every and m.ahead or :locked::boolean
    for update of p
),
counted as (
    select *, case when is_back then 0
                   when is_steady then uptime + greatest(extract(epoch from moment - touched_at) - :waited::float8, 0)
                   else uptime end as total
    from due
),
touched as (
    update {schema}.pulse p
    set grace_until = case when not c.is_steady and not c.was_idle then c.grace
                           when :locked::boolean then greatest(c.grace_until, c.short)
                           else c.grace_until end,
        touched_at = c.moment,
        period_from = case when c.is_back or c.total >= :enough::float8 then c.moment else p.period_from end,
        uptime = case when c.total >= :enough::float8 then 0 else c.total end,
        reap_before = case when c.is_back then '-infinity'
                           when c.total >= :enough::float8 then p.period_from
                           else p.reap_before end
    from counted c
    returning p.grace_until
)
select extract(epoch from greatest(grace_until, {now}) - {now})::float8 from touched
