-- The requests to cancel or pause running jobs of these workers.
select j.worker, j.id::text, j.token::text, j.request from {schema}.jobs j
where j.expires_at between '-infinity' and 'infinity' and j.request is not null and j.worker = any(:workers::text[])
