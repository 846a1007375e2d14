j.id::text, j.state::text, j.wait, j.attempt, j.losses, j.target, j.holds, j.waits, j.run_at > {now},
j.unique_key, j.windowed, j.chain::text, j.task
