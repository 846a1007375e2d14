-- Store a step, guarded by the lease.
insert into {schema}.steps (job, kind, name, result, until, done_at, started_at, input)
select id, :kind, :name, :result, {now} + :seconds, {now}, {now} - :took, :input from {schema}.jobs
where id = :id and token = :token and state = 'running'
on conflict (job, kind, name) do nothing;

select s.result, s.until - {now} from {schema}.steps s join {schema}.jobs j on j.id = s.job
where s.job = :id and s.kind = :kind and s.name = :name and j.token = :token and j.state = 'running';
