-- What time it is for the store.
select {now};
