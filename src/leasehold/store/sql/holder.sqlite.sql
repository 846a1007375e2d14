-- holder: the job that holds a target.
select id, state from jobs where target = :target and holds;
