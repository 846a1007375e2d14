-- Take the lock on the table that renewals need, and say how many seconds it was waited for. Writes nothing.
with locked as (
    update {schema}.jobs set state = state where false
)
select greatest(:waited::float8, {waited})
