-- The chains that a job waits or waited for.
select blocker, state, result, task from {schema}.edges where job = :id order by position;
