-- delete: the job and all that belongs to it.
insert into nudges (kind, key)
select 'target', target from jobs where id = :id and holds
union all
select 'chain', chain from jobs where id = :id and watched;

delete from attempts where job = :id;

delete from edges where job = :id;

delete from keys where until is null and (key, job) in (select unique_key, id from jobs where id = :id);

delete from finished where id = :id;

delete from jobs where id = :id;
