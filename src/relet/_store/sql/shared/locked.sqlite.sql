j.id, j.state, j.wait, j.attempt, j.losses, j.target, j.holds, j.waits, j.run_at > {now}, j.unique_key,
j.windowed, j.chain, j.task
