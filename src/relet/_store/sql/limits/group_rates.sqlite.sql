-- The recent starts of each group, within its own rate and within the rate for each group.
select r.group_key, k.value, sum(s.number), min(s.at) - {now} + r.per
from {schema}.rates r cross join json_each(:groups) k cross join {schema}.starts s
where r.queue = :queue and r.group_key in ('*', k.value) and k.value <> ''
  and s.queue = r.queue and s.group_key = k.value and s.at > {now} - r.per
group by r.group_key, k.value;
