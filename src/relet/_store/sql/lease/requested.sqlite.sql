-- The requests to cancel or pause running jobs of these workers.
select worker, id, token, request from {schema}.jobs
where expires_at is not null and request is not null and worker in (select value from json_each(:workers));
