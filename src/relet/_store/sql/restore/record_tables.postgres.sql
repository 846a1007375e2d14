update {schema}.pulse set tables = :tables::text
