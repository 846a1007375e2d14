-- When a step began, and the arguments of its function, for people who read them. Null: an older release stored it.
-- oldest: 1

alter table {schema}.steps add column started_at real;
alter table {schema}.steps add column input text;
