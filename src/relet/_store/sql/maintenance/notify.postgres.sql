-- Notify all listeners.
select pg_notify(:channel::text, '')
