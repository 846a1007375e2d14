-- The chains that a job waits or waited for.
select depends_on::text, state, result::text, task from {schema}.dependencies
    where job = :id::text::uuid order by "position"
