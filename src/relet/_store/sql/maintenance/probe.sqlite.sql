-- Check that the file can be written. Writes nothing.
update {schema}.pulse set single = single where 0;
