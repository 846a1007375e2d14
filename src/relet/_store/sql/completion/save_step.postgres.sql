-- Store a step, guarded by the lease. Locks the job, so that the lease cannot be lost before the commit. A reaper locks
-- `for update`, and waits; a renewal does not, so that many steps in a row do not keep it out.
with mine as materialized (
    select id from {schema}.jobs
    where id = :id::text::uuid and token = :token::text::uuid and state = 'running'
    for key share
),
kept as (
    insert into {schema}.steps (job, kind, name, result, until, done_at, started_at, input)
    select id, :kind::text, :name::text, :result::text::json, {now} + make_interval(secs => :seconds::float8), {now},
           {now} - make_interval(secs => :took::float8), :input::text::json
    from mine
    on conflict (job, kind, name) do update set done_at = steps.done_at  -- it was stored, and the reply was lost
    returning result, until
)
select result::text, extract(epoch from until - {now})::float8 from kept
