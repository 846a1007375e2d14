-- claimed: what a claim with this token took, if its answer was lost.
select j.id::text as id, j.version, j.task, j.queue, j.payload::text as payload, j.priority, j.target, j.attempt,
       j.losses, j.max_attempts, j.policy::text as policy, j.lease, j.chain::text as chain, j."position", j.key, j.blockers, j.context, j.rank, j.seq,
       extract(epoch from j.created_at)::float8 as created_at, extract(epoch from j.run_at)::float8 as run_at,
       extract(epoch from j.expires_at)::float8 as expires_at
from {schema}.jobs j
where j.expires_at between '-infinity' and 'infinity' and j.token = :token::text::uuid
