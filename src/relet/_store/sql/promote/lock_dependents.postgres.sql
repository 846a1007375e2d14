-- Those of the jobs that still wait for others, locked unless another transaction has locked them; the chain of each
-- that continues one; and the columns that decide where it goes next: whether its time has come, and its target.
with live as materialized (
    select id, waits, policy, case when "position" > 0 then chain end as chain,
           state = 'pending' and run_at <= {now} as due, run_at, seq, target, holds
    from {schema}.jobs
    where id = any(array(select json_array_elements_text(:ids::text::json)::uuid)) and waits > 0
),
free as materialized (
    select id from {schema}.jobs
    where id = any(array(select id from live)) and waits > 0
    order by id
    for update skip locked
)
select l.id::text, f.id is not null, l.waits, l.policy::text, l.chain::text, l.due, date_part('epoch', l.run_at), l.seq,
       l.target, l.holds
from live l left join free f on f.id = l.id
