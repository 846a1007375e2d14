-- Store for how many minutes a sample is enough.
update {schema}.stats set number = :minutes::integer
where step = 60 and at = to_timestamp(:at::float8) and queue = '' and name = 'sampled' and bucket = 0
