-- How many jobs of a group run.
select count(*) from {schema}.jobs where state = 'running' and queue = :queue and group_key = :group;
