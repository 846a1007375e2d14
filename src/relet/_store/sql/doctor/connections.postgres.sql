-- How many connections there are, and how many there may be: on the server, in this database, and for this role.
select (select sum(s.numbackends)::integer from pg_stat_database s),
       current_setting('max_connections')::integer,
       current_setting('superuser_reserved_connections')::integer
       + coalesce(current_setting('reserved_connections', true), '0')::integer,
       d.datconnlimit,
       (select s.numbackends from pg_stat_database s where s.datid = d.oid),
       (select r.rolconnlimit from pg_roles r where r.rolname = current_user),
       (select count(*)::integer from pg_stat_activity a where a.usename = current_user)
from pg_database d where d.datname = current_database()
