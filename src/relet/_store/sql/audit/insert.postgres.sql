-- Who did what. Once, however often it is tried.
insert into {schema}.audit (id, at, who, what, subject, detail)
values (:id::text::uuid, {now}, :who::text, :what::text, :subject::text, :detail::text::json)
on conflict (id) do nothing
