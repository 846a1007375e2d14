-- Apply decisions to rows of this transaction that stay in `jobs`. Inserts the attempt that ended, frees the target and
-- the key where the decision says so, and nudges the promoter about jobs that this may free.
insert into {schema}.attempts ( job, version, attempt, worker, started_at, renewed_at, expires_at, ended_at, outcome,
                               error, error_type)
select j.id, j.version, j.attempt, j.worker, j.started_at, j.renewed_at, j.expires_at, {now},
       json_extract(g.value, '$.outcome'), json_extract(g.value, '$.error'), json_extract(g.value, '$.error_type')
from json_each(:batch) g cross join {schema}.jobs j
where j.id = json_extract(g.value, '$.id') and j.state = 'running'
on conflict do nothing;

insert into {schema}.nudges (kind, key)
select 'target', j.target from json_each(:batch) g cross join {schema}.jobs j
where j.id = json_extract(g.value, '$.id') and j.target is not null
  and (j.holds and not json_extract(g.value, '$.holds')
       or coalesce(json_extract(g.value, '$.wait'), '') = 'target' and json_extract(g.value, '$.state') = 'pending')
union all
select 'job', j.id from json_each(:batch) g cross join {schema}.jobs j
where j.id = json_extract(g.value, '$.id') and json_extract(g.value, '$.wait') = 'jobs'
union all
select 'chain', j.chain from json_each(:batch) g cross join {schema}.jobs j
where j.id = json_extract(g.value, '$.id') and j.watched and json_extract(g.value, '$.state') = 'failed'
union all
select 'signal', j.id from json_each(:batch) g cross join {schema}.jobs j
where j.id = json_extract(g.value, '$.id') and json_extract(g.value, '$.wait') = 'time'
  and case when j.state = 'running' then json_extract(g.value, '$.awaits') else j.awaits end is not null;

delete from {schema}.keys
where until is null and (key, job) in (
    select j.unique_key, j.id from json_each(:batch) g cross join {schema}.jobs j
    where j.id = json_extract(g.value, '$.id') and json_extract(g.value, '$.state') = 'failed');

update {schema}.jobs as jobs
set state = json_extract(g.value, '$.state'), wait = json_extract(g.value, '$.wait'),
    attempt = json_extract(g.value, '$.attempt'), losses = json_extract(g.value, '$.losses'),
    suspect = min(json_extract(g.value, '$.losses'), 2),
    holds = json_extract(g.value, '$.holds'),
    run_at = coalesce({now} + json_extract(g.value, '$.delay'), jobs.run_at),
    token = case when json_extract(g.value, '$.keeps_token') then jobs.token end,
    stopped_at = case when json_extract(g.value, '$.state') in ('paused', 'failed') then {now} end,
    error = coalesce(json_extract(g.value, '$.error'), jobs.error),
    worker = null, expires_at = null, renewed_at = null, started_at = null, request = null, alone = 0,
    awaits = case when jobs.state = 'running' then json_extract(g.value, '$.awaits') else jobs.awaits end
from json_each(:batch) g
where jobs.id = json_extract(g.value, '$.id')
returning id, version;
