-- The jobs that a claim with this token took, if its reply was lost.
select {claimed}
from {schema}.jobs
where expires_at is not null and token = :token;
