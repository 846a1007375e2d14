-- beat: note that the store is reachable. After a gap, give the workers that stayed alive time to renew.
update {schema}.pulse
set grace_until = case when touched_at < {now} - :gap then {now} + :grace else grace_until end,
    touched_at = {now}
where touched_at <= {now} - :every
returning max(grace_until - {now}, 0);
