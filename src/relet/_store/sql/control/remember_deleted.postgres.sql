-- Store the ids of jobs that are deleted: a repeated enqueue whose answer was lost must not make them again.
insert into {schema}.operations (id, verb, subject, at)
select value::uuid, 'delete', value, {now} from json_array_elements_text(:ids::text::json)
on conflict (id) do nothing
