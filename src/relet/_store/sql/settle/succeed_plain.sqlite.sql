-- Running -> succeeded, guarded by the lease, for jobs without a successor. Returns how many succeeded. Each lease is
-- looked up once; from there on a temporary table names the rows.
create table if not exists temp.settling (
    job integer primary key, result text, watched integer not null, holds integer not null, keyed integer not null);

delete from temp.settling;

insert into temp.settling (job, watched, holds, keyed, result)
select rowid, watched, holds, unique_key is not null, :results
from {schema}.jobs
where id = :ids and token = :tokens and state = 'running';

insert into {schema}.finished (id, state, queue, task, priority, target, group_key, payload, result, attempt,
                               max_attempts, losses, version, worker, token, chain, position, continued, unique_key,
                               created_at, run_at, started_at, renewed_at, context, finished_at)
select j.id, 'succeeded', j.queue, j.task, j.priority, j.target, j.group_key, j.payload, coalesce(s.result, 'null'),
       j.attempt, j.max_attempts, j.losses, j.version, j.worker, j.token, j.chain, j.position, 0, j.unique_key,
       j.created_at, j.run_at, j.started_at, j.renewed_at, j.context, {now}
from temp.settling s cross join {schema}.jobs j
where j.rowid = s.job;

insert into {schema}.nudges (kind, key)
select 'target', j.target from temp.settling s cross join {schema}.jobs j where s.holds and j.rowid = s.job
union all
select 'chain', j.chain from temp.settling s cross join {schema}.jobs j where s.watched and j.rowid = s.job;

delete from {schema}.keys
where until is null and (key, job) in (
    select j.unique_key, j.id from temp.settling s cross join {schema}.jobs j where s.keyed and j.rowid = s.job);

delete from {schema}.jobs where rowid in (select job from temp.settling);

select count(*), coalesce(max(watched), 0), coalesce(max(holds), 0) from temp.settling;
