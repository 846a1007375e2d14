-- These are the tables of the store from now on.
update {schema}.pulse set tables = :tables::text
