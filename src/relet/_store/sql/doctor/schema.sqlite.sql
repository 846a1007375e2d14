-- Whether a schema of Relet was ever created here.
select exists (select 1 from sqlite_master where name = '{schema}.migrations');
