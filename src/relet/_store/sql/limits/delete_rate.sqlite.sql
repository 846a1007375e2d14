-- As many jobs of a queue, or of a key in it, may start as will.
delete from {schema}.rates where queue = :queue and key = :key;
