-- Insert the id of a change before the change. A second try waits here until the first one ends.
insert into {schema}.operations (id, verb, subject, request, at)
values (:id::text::uuid, :verb::text, :subject::text, :request::text, {now})
on conflict (id) do nothing
returning id::text
