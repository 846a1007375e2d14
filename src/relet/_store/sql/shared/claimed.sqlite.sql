id, version, task, queue, payload, attempt, max_attempts, policy, rank, seq, created_at, run_at, expires_at,
case when target is not null or losses > 0 or lease is not null or position > 0 or group_key is not null
       or dependency_count > 0 or context is not null
then json_array(target, losses, lease, chain, position, group_key, dependency_count, context) end
