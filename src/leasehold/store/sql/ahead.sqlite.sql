-- ahead: how many stand before a job in its target's line.
select count(*) from jobs
where target = :target and wait = 'target' and seq < (select seq from jobs where id = :id);
