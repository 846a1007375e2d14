state = 'running', attempt = attempt + 1, version = version + 1, worker = :worker, token = :token,
    started_at = {now}, alone = :alone, progress = null, renewed_at = null,
    expires_at = {now} + coalesce(lease, :lease)
