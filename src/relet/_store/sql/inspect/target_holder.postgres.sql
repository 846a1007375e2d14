-- The job that holds a target.
select id::text, state::text from {schema}.jobs where target = :target::text and holds
