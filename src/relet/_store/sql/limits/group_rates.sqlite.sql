-- The recent starts of each key, within its own rate and within the rate for each key.
select r.key, k.value, sum(s.number), min(s.at) - {now} + r.per
from {schema}.rates r cross join json_each(:keys) k cross join {schema}.starts s
where r.queue = :queue and r.key in ('*', k.value) and k.value <> ''
  and s.queue = r.queue and s.key = k.value and s.at > {now} - r.per
group by r.key, k.value;
