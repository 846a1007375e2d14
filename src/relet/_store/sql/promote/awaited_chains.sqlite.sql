-- Those of the chains that a job waits for.
select value from json_each(:chains)
where exists (select 1 from {schema}.edges e where e.blocker = value and e.state is null);
