-- How many jobs of a group run.
select count(*)::integer from {schema}.jobs
where state = 'running' and queue collate "POSIX" = :queue::text and group_key collate "POSIX" = :group::text
