-- Renew leases. A lease without a row is lost. Then the running jobs of this worker that it does not know, from a claim
-- whose reply was lost.
update {schema}.jobs
set expires_at = {now} + coalesce(lease, :lease), renewed_at = {now}
where (id, token) in (select json_extract(value, '$.id'), json_extract(value, '$.token') from json_each(:batch))
  and state = 'running';

select id, token, mine, mine, request from (
    select id, token, request, worker,
           (id, token) in (
               select json_extract(value, '$.id'), json_extract(value, '$.token') from json_each(:batch)) as mine
    from {schema}.jobs where expires_at is not null
)
where mine or worker = :worker;
