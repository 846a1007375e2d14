-- Record that the store is reachable and leases can be renewed. After a gap, after a wait for the table's lock, and
-- after the clock was set back, live workers get time to renew before leases are reaped.
with moments as materialized (
    select {now} as now, {now} - make_interval(secs => :gap::float8) as gap,
           {now} - make_interval(secs => :every::float8) as every,
           {now} + interval '1 second' as ahead, {now} + make_interval(secs => :grace::float8) as grace,
           {now} + make_interval(secs => :short::float8) as short
),
touched as (
    update {schema}.pulse p
    set grace_until = case when p.touched_at not between m.gap and m.ahead then m.grace
                           when :locked::boolean then greatest(p.grace_until, m.short)
                           else p.grace_until end,
        touched_at = m.now
    from moments m
    where p.touched_at not between m.every and m.ahead or :locked::boolean
    returning p.grace_until
)
select extract(epoch from greatest(grace_until - {now}, interval '0'))::float8 from touched
