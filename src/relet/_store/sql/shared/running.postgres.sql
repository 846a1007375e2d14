j.id::text, j.attempt, j.losses, j.alone, j.request, j.target, j.max_attempts, j.policy::text
