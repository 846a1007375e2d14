-- beat: note that the store is reachable. After a gap, give the workers that stayed alive time to renew.
update {schema}.pulse
set grace_until = case when touched_at < {now} - make_interval(secs => :gap::float8)
                       then {now} + make_interval(secs => :grace::float8) else grace_until end,
    touched_at = {now}
where touched_at <= {now} - make_interval(secs => :every::float8)
returning extract(epoch from greatest(grace_until - {now}, interval '0'))::float8
