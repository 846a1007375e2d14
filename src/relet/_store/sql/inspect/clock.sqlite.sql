-- The current time of the store.
select {now};
