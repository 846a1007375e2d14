-- Record that the store is reachable and leases can be renewed. After a gap, after a wait for the file's lock, and
-- after the clock was set back, live workers get time to renew before leases are reaped.
update {schema}.pulse
set grace_until = case when touched_at not between {now} - :gap and {now} + 1 then {now} + :grace
                       when :locked then max(grace_until, {now} + :short)
                       else grace_until end,
    touched_at = {now}
where touched_at not between {now} - :every and {now} + 1 or :locked
returning max(grace_until - {now}, 0);
