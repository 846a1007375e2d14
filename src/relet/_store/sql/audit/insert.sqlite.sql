-- Record who did what. A repeated try inserts no second row.
insert into {schema}.audit (id, at, who, what, subject, detail) values (:id, {now}, :who, :what, :subject, :detail)
on conflict (id) do nothing;
