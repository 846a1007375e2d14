-- The transactions and slots that keep dead rows from being removed: kind, name, application, state, role, seconds, and
-- the age in transactions. A role that may not see the times of other sessions still sees that age. A running vacuum
-- does not count.
select 'session', a.pid::text, coalesce(a.application_name, ''), coalesce(a.state, ''), coalesce(a.usename::text, ''),
       extract(epoch from clock_timestamp() - a.xact_start)::float8, greatest(age(a.backend_xmin), age(a.backend_xid))
from pg_stat_activity a
where a.datid = (select d.oid from pg_database d where d.datname = current_database())
  and a.pid <> pg_backend_pid() and (a.backend_xmin is not null or a.backend_xid is not null)
  and not exists (select from pg_stat_progress_vacuum v where v.pid = a.pid)
union all
select 'prepared', p.gid, '', '', p.owner::text,
       extract(epoch from clock_timestamp() - p.prepared)::float8, age(p.transaction)
from pg_prepared_xacts p where p.database = current_database()
union all
select 'slot', s.slot_name::text, coalesce(s.plugin::text, ''), case when s.active then 'active' else 'inactive' end,
       '', null, age(s.xmin)
from pg_replication_slots s where s.xmin is not null
union all
select 'standby', r.pid::text, coalesce(r.application_name, ''), coalesce(r.state, ''), coalesce(r.usename::text, ''),
       null, age(r.backend_xmin)
from pg_stat_replication r where r.backend_xmin is not null
