-- The chains that a job waits or waited for.
select blocker::text, state, result::text, task from {schema}.edges where job = :id::text::uuid order by "position"
