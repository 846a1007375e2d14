-- claimed: what a claim with this token took, if its answer was lost.
select id, version, task, queue, payload, priority, target, attempt, losses, max_attempts, policy, lease, chain,
       position, key, blockers, context, rank, seq, created_at, run_at, expires_at
from {schema}.jobs
where expires_at is not null and token = :token;
