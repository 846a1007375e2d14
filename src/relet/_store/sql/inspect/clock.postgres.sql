-- What time it is for the store.
select extract(epoch from {now})::float8
