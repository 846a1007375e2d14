j.id::text, j.version, j.task, j.queue, j.payload::text, j.attempt, j.max_attempts, j.policy::text, j.rank,
j.seq, date_part('epoch', j.created_at - timestamptz 'epoch'),
date_part('epoch', j.run_at - timestamptz 'epoch'), date_part('epoch', j.expires_at - timestamptz 'epoch'),
case when j.target is not null or j.losses > 0 or j.lease is not null or j."position" > 0 or j.group_key is not null
       or j.dependency_count > 0 or j.context is not null
then array[j.target, j.losses::text, j.lease::text, j.chain::text, j."position"::text, j.group_key,
j.dependency_count::text,
           j.context] end
