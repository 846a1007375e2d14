-- Remove what the limits of queues have recorded of a group.
with ready as (delete from {schema}.ready_groups where group_key = :group::text),
nudged as (delete from {schema}.group_nudges where group_key = :group::text),
started as (delete from {schema}.starts where group_key = :group::text)
update {schema}.queues set last_group = null where last_group = :group::text
