-- Running -> succeeded, guarded by the lease, for jobs without a successor. Returns how many succeeded. Each lease is
-- looked up once; from there on a temporary table names the rows.
create table if not exists temp.settling (
    job integer primary key, result text, watched integer not null, holds integer not null, keyed integer not null);

delete from temp.settling;

insert into temp.settling (job, watched, holds, keyed, result)
select rowid, watched, holds, unique_key is not null, :results
from {schema}.jobs
where id = :ids and token = :tokens and state = 'running';

insert into {schema}.finished ({kept}, losses, token, state, result, continued, finished_at)
select {j.kept}, j.losses, j.token, 'succeeded', coalesce(s.result, 'null'), 0, {now}
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
