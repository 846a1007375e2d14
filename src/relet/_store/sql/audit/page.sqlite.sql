-- A page of audit entries, the latest first.
select id, at, who, what, subject, detail
from {schema}.audit
where :before is null or seq < (select seq from {schema}.audit where id = :before)
order by seq desc
limit :most;
