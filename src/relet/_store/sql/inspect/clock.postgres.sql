-- The current time of the store.
select extract(epoch from {now})::float8
