-- The steps, sleeps and waits of a job, and the signals that it was sent, in the order in which they were stored.
select kind, name, result, until, at, started_at, input
from (
    select kind, name, result, until, done_at as at, instr('step sleep wait missed', kind) as turn,
           started_at, input
    from {schema}.steps where job = :id
    union all
    select 'signal', name, value, null, sent_at, 99, null, null from {schema}.signals where job = :id
)
order by at, turn, kind, name;
