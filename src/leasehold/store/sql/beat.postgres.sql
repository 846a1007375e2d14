-- beat: note that the store can be reached and jobs can be renewed. After a gap, after a wait for the table's lock, and
-- after the clock was put back, workers that are alive get time to renew before leases are taken away.
update {schema}.pulse
set grace_until = case when touched_at not between {now} - make_interval(secs => :gap::float8) and {now} + interval '1 second'
                       then {now} + make_interval(secs => :grace::float8)
                       when :locked::boolean then greatest(grace_until, {now} + make_interval(secs => :short::float8))
                       else grace_until end,
    touched_at = {now}
where touched_at not between {now} - make_interval(secs => :every::float8) and {now} + interval '1 second' or :locked::boolean
returning extract(epoch from greatest(grace_until - {now}, interval '0'))::float8
