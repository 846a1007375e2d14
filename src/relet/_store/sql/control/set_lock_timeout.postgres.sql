-- Who waits for a lock waits no longer than this. A person's verb does not hang behind a handler that completes its
-- job in a transaction left open, nor a settle behind a caller who takes the same unique key.
select set_config('lock_timeout', (:seconds::float8 * 1000)::integer::text, true)
