-- Which tables the store has: a dump that is restored has others, and its jobs may have run since it was made.
-- oldest: 1

alter table {schema}.pulse add column tables text;
comment on column {schema}.pulse.tables is 'object ids of the tables when a worker started last; null: none has';
