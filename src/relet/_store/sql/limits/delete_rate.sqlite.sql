-- Remove the rate of a queue, or of a group in it.
delete from {schema}.rates where queue = :queue and group_key = :group;
