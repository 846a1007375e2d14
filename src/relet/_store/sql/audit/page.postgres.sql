-- A page of audit entries, the latest first.
select id::text, extract(epoch from at)::float8, who, what, subject, detail::text
from {schema}.audit
where :cursor::text is null or seq < (select seq from {schema}.audit where id = :cursor::text::uuid)
order by seq desc
limit :limit::integer
