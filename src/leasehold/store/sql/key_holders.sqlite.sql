-- key_holders: who has the keys that could not be taken.
select key, job from keys
where key in (select value from json_each(:keys)) and (until is null or until > {now});
