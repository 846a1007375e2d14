-- The jobs that earlier tries of a claim took, if their replies were lost.
select j.token::text, {claimed}
from {schema}.jobs j
where j.expires_at between '-infinity' and 'infinity' and j.token between :first::text::uuid and :last::text::uuid
