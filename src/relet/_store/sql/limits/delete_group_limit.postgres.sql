-- Remove the limit of a group.
delete from {schema}.group_limits where queue = :queue::text and group_key = :group::text
