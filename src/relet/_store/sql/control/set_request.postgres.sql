-- Ask the owner of a running job, locked by an earlier statement, to end it. A cancel is not undone by a pause.
update {schema}.jobs
set request = case when request = 'cancel' then request else :request::text end
where id = :id::text::uuid and state = 'running'
