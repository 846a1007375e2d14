-- Those of the ids whose jobs were deleted lately, and when.
select id, at from {schema}.operations
where id in (select value from json_each(:ids)) and verb = 'delete' and subject = id;
