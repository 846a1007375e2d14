-- Ask the worker that runs a job, locked by an earlier statement, to end it. A pause does not undo a cancel.
update {schema}.jobs
set request = case when request = 'cancel' then request else :request::text end
where id = :id::text::uuid and state = 'running'
