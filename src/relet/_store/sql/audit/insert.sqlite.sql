-- Who did what. Once, however often it is tried.
insert into {schema}.audit (id, at, who, what, subject, detail) values (:id, {now}, :who, :what, :subject, :detail)
on conflict (id) do nothing;
