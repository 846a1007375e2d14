-- Store the ids of jobs that are deleted: a repeated enqueue whose answer was lost must not make them again.
insert into {schema}.operations (id, verb, subject, at)
select value, 'delete', value, {now} from json_each(:ids) where true
on conflict (id) do nothing;
