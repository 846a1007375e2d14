-- A page of audit entries, the latest first.
select id, at, who, what, subject, detail
from {schema}.audit
where :cursor is null or seq < (select seq from {schema}.audit where id = :cursor)
order by seq desc
limit :limit;
