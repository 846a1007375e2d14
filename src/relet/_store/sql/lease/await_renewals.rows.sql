-- Take the lock on the table that renewals need, and return how many seconds that took. Writes nothing: no job has this
-- id. (An engine that spreads rows needs a condition on them.)
with locked as (
    update {schema}.jobs set state = state where id = '00000000-0000-0000-0000-000000000000'::uuid
)
select greatest(:waited::float8, {waited})
