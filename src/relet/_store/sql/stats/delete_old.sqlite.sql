-- What is so old, once it is counted in longer steps, or as old as can be.
delete from {schema}.stats where step = :step and at < :before;
