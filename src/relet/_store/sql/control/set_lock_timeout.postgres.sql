-- Set the lock timeout of this transaction. An operator's action must not hang behind a handler that completes its job
-- in a transaction left open, nor a settle behind a caller that takes the same unique key.
select set_config('lock_timeout', (:seconds::float8 * 1000)::integer::text, true)
