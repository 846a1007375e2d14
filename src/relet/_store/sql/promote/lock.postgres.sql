-- One promoter at a time. Only a promoter makes a job the holder of its target.
select 1 from {schema}.locks where name = 'promote' for update
