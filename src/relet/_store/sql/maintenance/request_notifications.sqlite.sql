-- Sleepers watch the file itself here.
select 1 where false;
