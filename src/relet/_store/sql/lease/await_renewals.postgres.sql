-- Take the lock on the table that renewals need, and return how many seconds that took. Writes nothing.
with locked as (
    update {schema}.jobs set state = state where false
)
select greatest(:waited::float8, {waited})
