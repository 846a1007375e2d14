-- The steps, sleeps and waits of a job, and the signals that it was sent, in the order in which they were stored.
select kind, name, result, until, at, started_at, input
from (
    select kind, name, result::text as result, extract(epoch from until)::float8 as until,
           extract(epoch from done_at)::float8 as at, array_position(array['step', 'sleep', 'wait'], kind) as turn,
           extract(epoch from started_at)::float8 as started_at, input::text as input
    from {schema}.steps where job = :id::text::uuid
    union all
    select 'signal', name, value::text, null, extract(epoch from sent_at)::float8, null, null, null
    from {schema}.signals where job = :id::text::uuid
) s
order by at, turn, kind, name
