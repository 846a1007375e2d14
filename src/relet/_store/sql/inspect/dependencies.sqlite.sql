-- The chains that a job waits or waited for.
select depends_on, state, result, task from {schema}.dependencies where job = :id order by position;
