-- Remove the rate of a queue, or of a key in it.
delete from {schema}.rates where queue = :queue and key = :key;
