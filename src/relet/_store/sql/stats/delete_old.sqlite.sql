-- Delete counts that were added up in longer steps, or that are older than any step.
delete from {schema}.stats where step = :step and at < :before;
