-- Delete up to a number of rows of each kind that belong to jobs about to be deleted. Returns whether more may be left.
delete from {schema}.attempts where rowid in (
    select rowid from {schema}.attempts where job in (select value from json_each(:ids)) limit :limit);

delete from {schema}.steps where rowid in (
    select rowid from {schema}.steps where job in (select value from json_each(:ids)) limit :limit);

delete from {schema}.signals where rowid in (
    select rowid from {schema}.signals where job in (select value from json_each(:ids)) limit :limit);

delete from {schema}.dependencies where rowid in (
    select rowid from {schema}.dependencies where job in (select value from json_each(:ids)) limit :limit);

delete from {schema}.tags where job in (select value from json_each(:ids));

delete from {schema}.reruns where job in (select value from json_each(:ids));

select exists (select 1 from {schema}.attempts where job in (select value from json_each(:ids)))
    or exists (select 1 from {schema}.steps where job in (select value from json_each(:ids)))
    or exists (select 1 from {schema}.signals where job in (select value from json_each(:ids)))
    or exists (select 1 from {schema}.dependencies where job in (select value from json_each(:ids)));
