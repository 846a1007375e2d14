-- Of these queues; and how many jobs of the whole queue were started within such a rate, and in how many seconds the
-- oldest of those counts no more; and whether some lie in the future, as the clock was put back (moments are rounded up).
select r.queue, r.key, r.rate, r.per,
       (select sum(s.number) from {schema}.starts s where r.key = '' and s.queue = r.queue and s.at > {now} - r.per),
       (select min(s.at) from {schema}.starts s where r.key = '' and s.queue = r.queue and s.at > {now} - r.per) - {now} + r.per,
       (select max(s.at) > {now} + 1 + r.per / 1000 from {schema}.starts s where s.queue = r.queue)
from {schema}.rates r
where r.queue in (select value from json_each(:queues));
