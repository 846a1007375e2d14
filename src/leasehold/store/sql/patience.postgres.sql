-- patience: a person's verb does not hang behind a handler that completes its job in a transaction left open.
select set_config('lock_timeout', '2s', true)
