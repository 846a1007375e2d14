-- Ask the worker that runs a job to end it. A pause does not undo a cancel.
update {schema}.jobs
set request = case when request = 'cancel' then request else :request end
where id = :id and state = 'running';
