-- Notify workers, but only while one of them sleeps: a notification takes a lock that all commits share.
select pg_notify(:channel::text, '') from {schema}.arming where armed_until > {now}
