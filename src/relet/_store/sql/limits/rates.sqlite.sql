-- The rates of these queues; for rates of a whole queue, how many jobs were started within the period, and in how many
-- seconds the oldest of them no longer counts; and whether some starts lie in the future, because the clock was set
-- back (moments are rounded up).
select r.queue, r.group_key, r.rate, r.per,
       (select sum(s.number) from {schema}.starts s where r.group_key = '' and s.queue = r.queue
           and s.at > {now} - r.per),
       (select min(s.at) from {schema}.starts s
        where r.group_key = '' and s.queue = r.queue and s.at > {now} - r.per) - {now} + r.per,
       (select max(s.at) > {now} + 1 + r.per / 1000 from {schema}.starts s where s.queue = r.queue)
from {schema}.rates r
where r.queue in (select value from json_each(:queues));
