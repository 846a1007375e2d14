-- The jobs that earlier tries of a claim took, if their replies were lost.
select token, {claimed}
from {schema}.jobs
where expires_at is not null and token between :first and :last;
