-- Store a signal for a job, and nudge the promoter. A value sent before under this name stays.
with told as (
    insert into {schema}.signals (job, name, value, sent_at)
    values (:job::text::uuid, :name::text, :value::text::json, {now})
    on conflict (job, name) do nothing
    returning job
),
nudged as (
    insert into {schema}.nudges (kind, key) select 'signal', job::text from told
)
select job::text from told
