-- The days of `finished`: name, how many days ahead, and whether the partition is being detached (null: not attached).
select c.relname::text,
       to_date(right(c.relname, 8), 'YYYYMMDD') - (statement_timestamp() at time zone 'UTC')::date, i.inhdetachpending
from pg_class c
left join pg_inherits i on i.inhrelid = c.oid
where c.relnamespace = to_regnamespace('{schema}') and c.relkind = 'r' and c.relname ~ '^finished_[0-9]{8}$'
order by c.relname
