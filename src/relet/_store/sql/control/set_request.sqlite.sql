-- Ask the owner of a running job to end it. A cancel is not undone by a pause.
update {schema}.jobs
set request = case when request = 'cancel' then request else :request end
where id = :id and state = 'running';
