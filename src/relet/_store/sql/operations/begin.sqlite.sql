-- Insert the id of a change before the change.
insert into {schema}.operations (id, verb, subject, request, at) values (:id, :verb, :subject, :request, {now})
on conflict (id) do nothing
returning id;
