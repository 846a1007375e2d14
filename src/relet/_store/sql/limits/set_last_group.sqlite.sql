-- Record the group that was served last, in a queue that serves groups in turn.
update {schema}.queues set last_group = :group where queue = :queue;
