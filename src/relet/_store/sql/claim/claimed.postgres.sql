-- The jobs that a claim with this token took, if its reply was lost.
select {claimed}
from {schema}.jobs j
where j.expires_at between '-infinity' and 'infinity' and j.token = :token::text::uuid
