-- There are no nudges about groups: triggers add groups to `ready_groups`. (:queue, :limit)
select 0;
