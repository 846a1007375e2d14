-- What renewals need to be possible: the right to write, and a lock that does not conflict. Writes nothing.
update {schema}.jobs set state = state where false
