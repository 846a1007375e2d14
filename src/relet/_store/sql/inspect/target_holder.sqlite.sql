-- The job that holds a target.
select id, state from {schema}.jobs where target = :target and holds;
