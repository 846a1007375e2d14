-- What a claim with this token took, if its answer was lost.
select {claimed}
from {schema}.jobs
where expires_at is not null and token = :token;
