-- The objects that programs use: kind, name, owner, whether this role may act as the owner, and the privileges that it
-- lacks.
select 'table', c.relname::text, pg_get_userbyid(c.relowner)::text, pg_has_role(c.relowner, 'usage'),
       array_to_json(array(select p from unnest(array['select', 'insert', 'update', 'delete']) p
                           where not has_table_privilege(c.oid, p)))::text
from pg_class c
where c.relnamespace = to_regnamespace('{schema}') and c.relkind in ('r', 'p') and not c.relispartition
  and c.relname <> 'migrations'
  and c.relname !~ '^finished_[0-9]{8}$'
union all
select 'sequence', c.relname::text, pg_get_userbyid(c.relowner)::text, pg_has_role(c.relowner, 'usage'),
       case when has_sequence_privilege(c.oid, 'usage') then '[]' else '["usage"]' end
from pg_class c
where c.relnamespace = to_regnamespace('{schema}') and c.relkind = 'S'
  and not exists (select from pg_depend d where d.objid = c.oid and d.deptype = 'i')  -- identity columns need no right
union all
select 'schema', n.nspname::text, pg_get_userbyid(n.nspowner)::text, pg_has_role(n.nspowner, 'usage'),
       case when has_schema_privilege(n.oid, 'usage') then '[]' else '["usage"]' end
from pg_namespace n where n.oid = to_regnamespace('{schema}')
union all
select 'function', p.proname::text, pg_get_userbyid(p.proowner)::text, pg_has_role(p.proowner, 'usage'),
       case when has_function_privilege(p.oid, 'execute') then '[]' else '["execute"]' end
from pg_proc p where p.pronamespace = to_regnamespace('{schema}') and p.proname in ('make_partitions', 'drop_partition')
order by 1 desc, 2
