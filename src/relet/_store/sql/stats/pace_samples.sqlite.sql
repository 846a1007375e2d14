-- Store for how many minutes a sample is enough.
update {schema}.stats set number = :minutes
where step = 60 and at = :at and queue = '' and name = 'sampled' and bucket = 0;
