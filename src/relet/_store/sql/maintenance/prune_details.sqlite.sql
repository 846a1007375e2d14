-- Delete up to a number of rows of each kind that belong to jobs about to be deleted. Returns whether more may be left.
delete from {schema}.attempts where rowid in (
    select rowid from {schema}.attempts where job in (select value from json_each(:ids)) limit :most);

delete from {schema}.steps where rowid in (
    select rowid from {schema}.steps where job in (select value from json_each(:ids)) limit :most);

delete from {schema}.signals where rowid in (
    select rowid from {schema}.signals where job in (select value from json_each(:ids)) limit :most);

delete from {schema}.edges where rowid in (
    select rowid from {schema}.edges where job in (select value from json_each(:ids)) limit :most);

select exists (select 1 from {schema}.attempts where job in (select value from json_each(:ids)))
    or exists (select 1 from {schema}.steps where job in (select value from json_each(:ids)))
    or exists (select 1 from {schema}.signals where job in (select value from json_each(:ids)))
    or exists (select 1 from {schema}.edges where job in (select value from json_each(:ids)));
