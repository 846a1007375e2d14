-- Whether a schema of ours was ever begun here.
select exists (select 1 from sqlite_master where name = '{schema}.migrations');
