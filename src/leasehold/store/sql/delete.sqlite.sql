-- delete: the job and all that belongs to it.
insert into {schema}.nudges (kind, key)
select 'target', target from {schema}.jobs where id = :id and holds
union all
select 'chain', chain from {schema}.jobs where id = :id and watched;

delete from {schema}.attempts where job = :id;

delete from {schema}.edges where job = :id;

delete from {schema}.keys where until is null and (key, job) in (select unique_key, id from {schema}.jobs where id = :id);

delete from {schema}.finished where id = :id;

delete from {schema}.jobs where id = :id;
