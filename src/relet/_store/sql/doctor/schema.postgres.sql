-- Whether a schema of Relet was ever created here.
select to_regclass('{schema}.migrations') is not null
