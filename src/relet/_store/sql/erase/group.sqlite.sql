-- Remove what the limits of queues have recorded of a group.
delete from {schema}.ready_groups where group_key = :group;

delete from {schema}.starts where group_key = :group;

update {schema}.queues set last_group = null where last_group = :group;
