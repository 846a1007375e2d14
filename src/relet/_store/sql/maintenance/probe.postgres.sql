-- Check that renewals are possible: the privilege to write, and a lock that does not conflict. Writes nothing.
update {schema}.jobs set state = state where false
