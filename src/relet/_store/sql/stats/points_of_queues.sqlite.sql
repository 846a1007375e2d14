-- Counts of some queues in steps of at least this length. Counts in shorter steps are added up. The primary key begins
-- with step and time, so each moment is looked up: a range would read the counts of all other queues, too.
with recursive moments(step, at, last) as (
    select s.column1,
           max(:since, (select min(f.at) from {schema}.stats f where f.step = s.column1)),
           min(:until - 1, (select max(l.at) from {schema}.stats l where l.step = s.column1))
    from (values (60), (600), (3600), (21600)) as s
    where s.column1 <= :step
    union all
    select step, at + step, last from moments where at + step <= last
)
select cast(c.at / :step as integer) * :step as moment, c.queue, c.name, c.bucket,
       case when max(c.peak) then max(c.number) else sum(c.number) end
from moments m cross join json_each(:queues) as q
cross join {schema}.stats as c on c.step = m.step and c.at = m.at and c.queue = q.value
where m.at <= m.last and c.name <> 'sampled'
group by moment, c.queue, c.name, c.bucket
order by moment, c.queue;
