-- What other tables hold of a job, by job: erasing finds it by these, however many jobs there are.
-- oldest: 1

create index operations_subject on {schema}.operations (subject);
create index audit_subject on {schema}.audit (subject);
create index dependencies_copies on {schema}.dependencies (depends_on) where result is not null;
