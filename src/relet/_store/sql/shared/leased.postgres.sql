state = 'running', attempt = j.attempt + 1, version = j.version + 1, worker = :worker::text,
    token = :token::text::uuid, started_at = {now}, alone = :alone::boolean, progress = null, renewed_at = null,
    expires_at = {now} + make_interval(secs => coalesce(j.lease, :lease::float8))
