-- probe: whether the file can be written. Writes nothing.
update {schema}.jobs set state = state where 0;
