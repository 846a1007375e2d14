-- Tell whoever listens.
select pg_notify(:channel::text, '')
