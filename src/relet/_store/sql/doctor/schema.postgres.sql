-- Whether a schema of ours was ever begun here.
select to_regclass('{schema}.migrations') is not null
