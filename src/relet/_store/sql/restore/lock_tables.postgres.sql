-- Of the workers that start, one records the tables.
select from {schema}.pulse for update
