-- open_edges: undecided dependencies of the jobs named, and on the chains named.
select job, blocker from {schema}.edges where job in (select value from json_each(:jobs)) and state is null
union
select job, blocker from {schema}.edges where blocker in (select value from json_each(:chains)) and state is null;
