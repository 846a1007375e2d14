-- claim_shares: as `claim`, from one queue whose limits are locked: so many of each key in turn, '' being those without
-- one, until there are enough.
with asked as materialized (
    select s.key, s.want from json_to_recordset(:keys::text::json) as s(key text, want integer)
    where not exists (select from {schema}.queues q where q.queue = :queue::text and q.paused)
),
known as materialized (select json_array_elements_text(:tasks::text::json) as task),
nameless as materialized (  -- those that became jobs of this queue while it was told that keys matter
    select id from (
        select id, key from {schema}.jobs where state = 'queued' and queue = :queue::text and suspect = :suspect::smallint
        order by rank, seq limit 2000) first
    where key is null
),
candidates as materialized (
    select c.id
    from asked a cross join lateral (
        select of_key.id from (
            select id from {schema}.jobs
            where state = 'queued' and queue = :queue::text and suspect = :suspect::smallint and key = a.key
              and task = any(array(select task from known))
            order by rank, seq
            limit a.want
            for update skip locked
        ) of_key
        union all
        select of_nobody.id from (
            select id from {schema}.jobs
            where a.key = '' and state = 'queued' and id = any(array(select id from nameless)) and task = any(array(select task from known))
            order by rank, seq
            limit a.want
            for update skip locked
        ) of_nobody
    ) c
    limit :most::integer
)
update {schema}.jobs j
set state = 'running', attempt = j.attempt + 1, version = j.version + 1, worker = :worker::text,
    token = :token::text::uuid, started_at = {now}, alone = :alone::boolean, progress = null, renewed_at = null,
    expires_at = {now} + make_interval(secs => coalesce(j.lease, :lease::float8))
where j.id = any(array(select id from candidates))
returning j.id::text, j.version, j.task, j.queue, j.payload::text, j.priority, j.target, j.attempt, j.losses, j.max_attempts,
          j.policy::text, j.lease, j.chain::text, j."position", j.key, j.blockers, j.context, j.rank, j.seq,
          extract(epoch from j.created_at)::float8, extract(epoch from j.run_at)::float8, extract(epoch from j.expires_at)::float8
