-- Record who did what. A repeated try inserts no second row.
insert into {schema}.audit (id, at, who, what, subject, detail)
values (:id::text::uuid, {now}, :who::text, :what::text, :subject::text, :detail::text::json)
on conflict (id) do nothing
