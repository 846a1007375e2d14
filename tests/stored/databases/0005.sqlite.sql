BEGIN TRANSACTION;
CREATE TABLE relet_attempts (
    job         text not null,
    version     integer not null,
    attempt     integer not null,
    worker      text not null,
    started_at  real not null,
    ended_at    real not null,
    renewed_at  real,
    expires_at  real,
    outcome     text not null,
    error       text, error_type text,
    primary key (job, version)
);
INSERT INTO "relet_attempts" VALUES('01a1efc9-99b9-71ca-abd9-85a6628a17f7',1,1,'vm:4436:592bf801',1795024329.741,1795024329.773,NULL,1795024334.741,'retried','ValueError: card declined

Traceback (most recent call last):
  File "/srv/tests/stored/shop.py", line 28, in refuse
    raise ValueError(reason)
ValueError: card declined
','builtins.ValueError');
INSERT INTO "relet_attempts" VALUES('01a1efc9-99b9-71ca-abd9-85a6628a17f7',2,2,'vm:4436:592bf801',1795024329.783,1795024329.785,NULL,1795024334.783,'failed','ValueError: card declined

Traceback (most recent call last):
  File "/srv/tests/stored/shop.py", line 28, in refuse
    raise ValueError(reason)
ValueError: card declined
','builtins.ValueError');
INSERT INTO "relet_attempts" VALUES('01a1efc9-9c50-7ecf-bb86-d144314f50c2',1,1,'vm:4451:41acbe14',1795024330.404,1795024330.415,NULL,1795024335.404,'snoozed',NULL,NULL);
CREATE TABLE relet_audit (
    seq      integer primary key autoincrement,
    id       text not null unique,  
    at       real not null,
    who      text not null,
    what     text not null,
    subject  text not null,
    detail   text
);
INSERT INTO "relet_audit" VALUES(1,'01a1efc9-9c4b-7e60-8b8f-9d3e78681c04',1795024329.807,'ada','cancel','01a1efc9-9c47-7dae-8d6c-0ab6ab94d529',NULL);
INSERT INTO "relet_audit" VALUES(2,'01a1efc9-a12d-73b6-b828-6e78d79cb54c',1795024331.053,'ada','pause_queue','paused',NULL);
CREATE TABLE relet_dependencies (
    job         text not null,
    depends_on  text not null,  
    position    integer not null,
    state       text check (state in ('succeeded', 'failed', 'cancelled', 'deleted')),
    result      text,
    task        text,  
    primary key (job, depends_on)
);
INSERT INTO "relet_dependencies" VALUES('01a1efc9-a11d-7c43-879a-0c4d92fe8516','01a1efc9-a114-78df-a64e-deeb2867aab6',0,NULL,NULL,NULL);
INSERT INTO "relet_dependencies" VALUES('01a1efc9-a11d-7c43-879a-0c4d92fe8516','01a1efc9-a115-7cff-a2d3-829090c8b69b',1,NULL,NULL,NULL);
INSERT INTO "relet_dependencies" VALUES('01a1efc9-a11d-7c43-879a-0c4d92fe8516','01a1efc9-a116-724f-8782-f7a7240345ea',2,NULL,NULL,NULL);
CREATE TABLE relet_ended_sessions (
    id     text primary key,
    until  real not null
);
CREATE TABLE relet_finished (
    id            text primary key not null,
    state         text not null check (state in ('succeeded', 'cancelled')),
    queue         text not null,
    task          text not null,
    priority      integer not null,
    target        text,
    group_key     text,
    payload       text not null,
    result        text,
    error         text,
    attempt       integer not null,
    max_attempts  integer not null,
    losses        integer not null,
    version       integer not null,
    worker        text,
    token         text,
    chain         text not null,
    position      integer not null,
    continued     integer not null default 0,
    unique_key    text,
    created_at    real not null,
    run_at        real not null,
    started_at    real,
    renewed_at    real,
    context       text,
    finished_at   real not null
, error_type text);
INSERT INTO "relet_finished" VALUES('01a1efc9-99b6-743a-a719-af8365e954db','succeeded','default','double',0,NULL,NULL,'{"number":1}','2',NULL,1,4,0,1,'vm:4436:592bf801','e81e70b4-1b08-41b5-9c27-0687d5ea4d8b','01a1efc9-99b6-743a-a719-af8365e954db',0,0,NULL,1795024329.143,1795024329.143,1795024329.741,NULL,NULL,1795024329.752,NULL);
INSERT INTO "relet_finished" VALUES('01a1efc9-99b8-7a6d-a6a2-549ffba5dfbf','succeeded','default','first',0,NULL,NULL,'{"number":2}',NULL,NULL,1,4,0,1,'vm:4436:592bf801','e81e70b4-1b08-41b5-9c27-0687d5ea4d8b','01a1efc9-99b8-7a6d-a6a2-549ffba5dfbf',0,1,NULL,1795024329.144,1795024329.144,1795024329.741,NULL,NULL,1795024329.761,NULL);
INSERT INTO "relet_finished" VALUES('01a1efc9-9c0f-7166-b8f1-d2606ab4df38','succeeded','default','double',0,NULL,NULL,'{"number":2}','4',NULL,1,4,0,1,'vm:4436:592bf801','0457f797-3f3b-4657-a21b-21d451d16f13','01a1efc9-99b8-7a6d-a6a2-549ffba5dfbf',1,0,NULL,1795024329.764,1795024329.764,1795024329.77,NULL,NULL,1795024329.776,NULL);
INSERT INTO "relet_finished" VALUES('01a1efc9-9c47-7dae-8d6c-0ab6ab94d529','cancelled','default','double',0,NULL,NULL,'{"number":3}',NULL,NULL,0,4,0,0,NULL,NULL,'01a1efc9-9c47-7dae-8d6c-0ab6ab94d529',0,0,NULL,1795024329.801,1795027929.801,NULL,NULL,NULL,1795024329.805,NULL);
CREATE TABLE relet_group_limits (
    queue        text not null,
    group_key    text not null,
    max_running  integer not null check (max_running >= 0),
    primary key (queue, group_key)
) without rowid;
INSERT INTO "relet_group_limits" VALUES('limited','*',2);
CREATE TABLE relet_jobs (
    id                text primary key not null,
    seq               integer not null,  
    state             text not null check (state in ('pending', 'queued', 'running', 'paused', 'failed')),
    wait              text check (wait in ('jobs', 'time', 'target')),
    queue             text not null,
    task              text not null,
    priority          integer not null check (priority between -100 and 100),
    rank              integer not null,  
    target            text,
    group_key         text,  
    holds             integer not null default 0,
    payload           text not null check (json_valid(payload)),
    run_at            real not null,
    attempt           integer not null default 0,
    max_attempts      integer not null check (max_attempts >= 1),
    losses            integer not null default 0 check (losses >= 0),
    suspect           integer not null default 0,  
    version           integer not null default 0,
    policy            text,  
    lease             real,
    worker            text,
    token             text,
    expires_at        real,
    renewed_at        real,  
    started_at        real,
    alone             integer not null default 0,
    request           text check (request in ('cancel', 'pause')),
    progress          text,  
    error             text,
    chain             text not null,
    position          integer not null default 0,
    waits             integer not null default 0 check (waits >= 0),
    dependency_count  integer not null default 0,  
    awaits            text,  
    context           text,  
    watched           integer not null default 0,
    unique_key        text,
    windowed          integer not null default 0,
    created_at        real not null,
    stopped_at        real, start_by real,
    constraint rank_is_of_priority check (rank = -priority),
    constraint suspect_is_of_losses check (suspect = min(losses, 2)),
    constraint running_is_leased check (
        (state = 'running') = (worker is not null)
        and (state = 'running') = (expires_at is not null)
        and (state = 'running') = (started_at is not null)
        and (state <> 'running' or token is not null)),
    constraint pending_waits check (  
        (state = 'pending') = (wait is not null) or (state = 'paused' and wait = 'target' and not holds)),
    constraint request_is_for_running check (request is null or state = 'running'),
    constraint holder_has_target check (target is not null or not holds),
    constraint target_is_held check (target is null or holds or state not in ('queued', 'running')),
    constraint attempts_in_bounds check (
        attempt between 0 and max_attempts and (state <> 'queued' or attempt < max_attempts)),
    constraint stopped_has_moment check ((state in ('paused', 'failed')) = (stopped_at is not null))
);
INSERT INTO "relet_jobs" VALUES('01a1efc9-99b9-71ca-abd9-85a6628a17f7',6,'failed',NULL,'default','refuse',0,0,'blocked',NULL,1,'{"reason":"card declined"}',1.79502432977883863451e+09,2,2,0,0,2,'{"backoff":[0.01,0.01,2.0,true]}',NULL,NULL,'b66bd76d-fd13-4524-985a-5cb42ca486f6',NULL,NULL,NULL,0,NULL,NULL,'ValueError: card declined

Traceback (most recent call last):
  File "/srv/tests/stored/shop.py", line 28, in refuse
    raise ValueError(reason)
ValueError: card declined
','01a1efc9-99b9-71ca-abd9-85a6628a17f7',0,0,0,NULL,NULL,1,NULL,0,1795024329.148,1795024329.785,NULL);
INSERT INTO "relet_jobs" VALUES('01a1efc9-9c50-7ecf-bb86-d144314f50c2',8,'pending','time','default','approve',0,0,NULL,NULL,0,'{"amount":7}',2111248330.416,0,4,0,0,1,NULL,NULL,NULL,'f56d4e85-5c48-4b75-b8ac-c77c95f8f1ec',NULL,NULL,NULL,0,NULL,NULL,NULL,'01a1efc9-9c50-7ecf-bb86-d144314f50c2',0,0,0,'answer',NULL,0,NULL,0,1795024329.809,NULL,NULL);
INSERT INTO "relet_jobs" VALUES('01a1efc9-9eb7-7557-8b87-9947a9c72a2b',9,'running',NULL,'abandoned','die',0,0,NULL,NULL,0,'{"folder":"/tmp/tmpilx5ol65"}',1795024330.424,1,4,0,0,1,NULL,NULL,'vm:4464:32989ab4','d994318b-8206-42c3-beba-034342469382',1795024336.011,NULL,1795024331.011,0,NULL,NULL,NULL,'01a1efc9-9eb7-7557-8b87-9947a9c72a2b',0,0,0,NULL,NULL,0,NULL,0,1795024330.424,NULL,NULL);
INSERT INTO "relet_jobs" VALUES('01a1efc9-a114-78df-a64e-deeb2867aab6',10,'queued',NULL,'waiting','double',0,0,NULL,NULL,0,'{"number":0}',1795024331.028,0,4,0,0,0,NULL,NULL,NULL,NULL,NULL,NULL,NULL,0,NULL,NULL,NULL,'01a1efc9-a114-78df-a64e-deeb2867aab6',0,0,0,NULL,NULL,0,NULL,0,1795024331.028,NULL,NULL);
INSERT INTO "relet_jobs" VALUES('01a1efc9-a115-7cff-a2d3-829090c8b69b',11,'queued',NULL,'waiting','double',1,-1,NULL,NULL,0,'{"number":1}',1795024331.029,0,4,0,0,0,NULL,NULL,NULL,NULL,NULL,NULL,NULL,0,NULL,NULL,NULL,'01a1efc9-a115-7cff-a2d3-829090c8b69b',0,0,0,NULL,NULL,0,NULL,0,1795024331.029,NULL,NULL);
INSERT INTO "relet_jobs" VALUES('01a1efc9-a116-724f-8782-f7a7240345ea',12,'queued',NULL,'waiting','double',2,-2,NULL,NULL,0,'{"number":2}',1795024331.03,0,4,0,0,0,NULL,NULL,NULL,NULL,NULL,NULL,NULL,0,NULL,NULL,NULL,'01a1efc9-a116-724f-8782-f7a7240345ea',0,0,0,NULL,NULL,0,NULL,0,1795024331.03,NULL,NULL);
INSERT INTO "relet_jobs" VALUES('01a1efc9-a117-7b7f-b532-573a6deca51d',13,'pending','time','waiting','double',0,0,NULL,NULL,0,'{"number":10}',1795024332.031,0,4,0,0,0,NULL,NULL,NULL,NULL,NULL,NULL,NULL,0,NULL,NULL,NULL,'01a1efc9-a117-7b7f-b532-573a6deca51d',0,0,0,NULL,NULL,0,NULL,0,1795024331.031,NULL,NULL);
INSERT INTO "relet_jobs" VALUES('01a1efc9-a118-7786-966b-0f493ccc76f8',14,'pending','target','waiting','double',0,0,'blocked',NULL,0,'{"number":11}',1795024331.032,0,4,0,0,0,NULL,NULL,NULL,NULL,NULL,NULL,NULL,0,NULL,NULL,NULL,'01a1efc9-a118-7786-966b-0f493ccc76f8',0,0,0,NULL,NULL,0,NULL,0,1795024331.032,NULL,NULL);
INSERT INTO "relet_jobs" VALUES('01a1efc9-a119-7d68-83e4-374e93168111',15,'queued',NULL,'waiting','double',0,0,NULL,NULL,0,'{"number":12}',1795024331.034,0,4,0,0,0,NULL,NULL,NULL,NULL,NULL,NULL,NULL,0,NULL,NULL,NULL,'01a1efc9-a119-7d68-83e4-374e93168111',0,0,0,NULL,NULL,0,'once',0,1795024331.034,NULL,NULL);
INSERT INTO "relet_jobs" VALUES('01a1efc9-a11b-7470-8ce6-76427824af8f',16,'queued',NULL,'waiting','double',0,0,NULL,NULL,0,'{"number":13}',1795024331.036,0,4,0,0,0,NULL,NULL,NULL,NULL,NULL,NULL,NULL,0,NULL,NULL,NULL,'01a1efc9-a11b-7470-8ce6-76427824af8f',0,0,0,NULL,NULL,0,'window',1,1795024331.036,NULL,NULL);
INSERT INTO "relet_jobs" VALUES('01a1efc9-a11d-7c43-879a-0c4d92fe8516',17,'pending','jobs','waiting','collect',0,0,NULL,NULL,0,'{}',1795024331.039,0,4,0,0,0,NULL,NULL,NULL,NULL,NULL,NULL,NULL,0,NULL,NULL,NULL,'01a1efc9-a11d-7c43-879a-0c4d92fe8516',0,3,3,NULL,NULL,0,NULL,0,1795024331.039,NULL,NULL);
INSERT INTO "relet_jobs" VALUES('01a1efc9-a122-7a65-965a-1728fc3e95e2',18,'paused',NULL,'waiting','double',0,0,NULL,NULL,0,'{"number":14}',1795024331.042,0,4,0,0,0,NULL,NULL,NULL,NULL,NULL,NULL,NULL,0,NULL,NULL,NULL,'01a1efc9-a122-7a65-965a-1728fc3e95e2',0,0,0,NULL,NULL,0,NULL,0,1795024331.042,1795024331.045,NULL);
INSERT INTO "relet_jobs" VALUES('01a1efc9-a127-7f81-8bcb-3ab69d2f12ce',19,'queued',NULL,'paused','double',0,0,NULL,NULL,0,'{"number":15}',1795024331.047,0,4,0,0,0,NULL,NULL,NULL,NULL,NULL,NULL,NULL,0,NULL,NULL,NULL,'01a1efc9-a127-7f81-8bcb-3ab69d2f12ce',0,0,0,NULL,NULL,0,NULL,0,1795024331.047,NULL,NULL);
INSERT INTO "relet_jobs" VALUES('01a1efc9-a128-7c8a-9d22-de668837dced',20,'queued',NULL,'limited','double',0,0,NULL,'a',0,'{"number":0}',1795024331.049,0,4,0,0,0,NULL,NULL,NULL,NULL,NULL,NULL,NULL,0,NULL,NULL,NULL,'01a1efc9-a128-7c8a-9d22-de668837dced',0,0,0,NULL,NULL,0,NULL,0,1795024331.049,NULL,NULL);
INSERT INTO "relet_jobs" VALUES('01a1efc9-a12a-701c-80fb-175d419ad73b',21,'queued',NULL,'limited','double',0,0,NULL,'a',0,'{"number":1}',1795024331.05,0,4,0,0,0,NULL,NULL,NULL,NULL,NULL,NULL,NULL,0,NULL,NULL,NULL,'01a1efc9-a12a-701c-80fb-175d419ad73b',0,0,0,NULL,NULL,0,NULL,0,1795024331.05,NULL,NULL);
INSERT INTO "relet_jobs" VALUES('01a1efc9-a12b-70fa-8b0b-cabf03c8e0a5',22,'queued',NULL,'limited','double',0,0,NULL,'b',0,'{"number":2}',1795024331.051,0,4,0,0,0,NULL,NULL,NULL,NULL,NULL,NULL,NULL,0,NULL,NULL,NULL,'01a1efc9-a12b-70fa-8b0b-cabf03c8e0a5',0,0,0,NULL,NULL,0,NULL,0,1795024331.051,NULL,NULL);
CREATE TABLE relet_keys (
    key    text primary key not null,
    job    text not null,
    until  real
);
INSERT INTO "relet_keys" VALUES('once','01a1efc9-a119-7d68-83e4-374e93168111',NULL);
INSERT INTO "relet_keys" VALUES('window','01a1efc9-a11b-7470-8ce6-76427824af8f',1795024391.036);
CREATE TABLE relet_migrations (version integer primary key, applied_at real not null, oldest integer, release text);
INSERT INTO "relet_migrations" VALUES(1,1.7950243291069998741e+09,1,'0.1.0');
INSERT INTO "relet_migrations" VALUES(2,1.79502432911098289492e+09,1,'0.1.0');
INSERT INTO "relet_migrations" VALUES(3,1.79502432911198878291e+09,1,'0.1.0');
INSERT INTO "relet_migrations" VALUES(4,1.79502432911500644681e+09,1,'0.1.0');
INSERT INTO "relet_migrations" VALUES(5,1.79502432911798357959e+09,1,'0.1.0');
CREATE TABLE relet_nudges (
    id      integer primary key autoincrement,
    kind    text not null check (kind in ('target', 'job', 'chain', 'signal')),
    key     text not null,
    beyond  text
);
INSERT INTO "relet_nudges" VALUES(6,'target','blocked',NULL);
INSERT INTO "relet_nudges" VALUES(7,'job','01a1efc9-a11d-7c43-879a-0c4d92fe8516',NULL);
CREATE TABLE relet_operations (
    id       text primary key,
    verb     text not null,
    subject  text not null,
    request  text,  
    outcome  text,  
    at       real not null
) without rowid;
INSERT INTO "relet_operations" VALUES('01a1efc9-99a1-7b91-b60f-32cba750b422','limit_queue','limited',NULL,'{}',1795024329.129);
INSERT INTO "relet_operations" VALUES('01a1efc9-9c4a-78db-987c-1fc3ed462c4b','cancel','01a1efc9-9c47-7dae-8d6c-0ab6ab94d529',NULL,'{"jobs":[{"id":"01a1efc9-9c47-7dae-8d6c-0ab6ab94d529","task":"double","queue":"default","state":"cancelled","priority":0,"payload":"null","attempt":0,"max_attempts":4,"losses":0,"version":0,"chain":"01a1efc9-9c47-7dae-8d6c-0ab6ab94d529","position":0,"created_at":"2026-11-18T17:52:09.801000Z","run_at":"2026-11-18T18:52:09.801000Z","started_at":null,"finished_at":"2026-11-18T17:52:09.805000Z","wait":null,"target":null,"holds":false,"unique":null,"worker":null,"expires_at":null,"request":null,"result":null,"error":null,"continued":false,"progress":null,"group":null,"awaits":null,"context":null,"renewed_at":null,"start_by":null,"tags":[],"rerun_of":null,"error_type":null,"existing":false}]}',1795024329.803);
INSERT INTO "relet_operations" VALUES('01a1efc9-a123-758d-923b-c568e4b3e4ee','pause','01a1efc9-a122-7a65-965a-1728fc3e95e2',NULL,'{"jobs":[{"id":"01a1efc9-a122-7a65-965a-1728fc3e95e2","task":"double","queue":"waiting","state":"paused","priority":0,"payload":"null","attempt":0,"max_attempts":4,"losses":0,"version":0,"chain":"01a1efc9-a122-7a65-965a-1728fc3e95e2","position":0,"created_at":"2026-11-18T17:52:11.042000Z","run_at":"2026-11-18T17:52:11.042000Z","started_at":null,"finished_at":"2026-11-18T17:52:11.045000Z","wait":null,"target":null,"holds":false,"unique":null,"worker":null,"expires_at":null,"request":null,"result":null,"error":null,"continued":false,"progress":null,"group":null,"awaits":null,"context":null,"renewed_at":null,"start_by":null,"tags":[],"rerun_of":null,"error_type":null,"existing":false}]}',1795024331.043);
INSERT INTO "relet_operations" VALUES('01a1efc9-a12d-72ef-acf3-e7f1696dd43e','pause_queue','paused',NULL,'{}',1795024331.053);
CREATE TABLE relet_pulse (
    single       integer primary key check (single = 1),
    touched_at   real not null default 0,
    grace_until  real not null default 0
, tables text, period_from real not null default 0, uptime real not null default 0, reap_before real not null default 0);
INSERT INTO "relet_pulse" VALUES(1,1795024330.986,1.79502433138366675373e+09,NULL,0.0,1.2684562964059296064e+00,0.0);
CREATE TABLE relet_quarantine (
    single  integer primary key check (single = 1),
    worker  text,
    until   real not null default 0
);
INSERT INTO "relet_quarantine" VALUES(1,NULL,1795024333.992);
CREATE TABLE relet_queue_samples (
    queue        text primary key,
    pending      integer not null,
    queued       integer not null,
    running      integer not null,
    paused_jobs  integer not null,
    failed       integer not null,
    oldest       real,  
    counted_at   real not null
);
INSERT INTO "relet_queue_samples" VALUES('default',1,2,0,0,0,5.8500003814697265625e-01,1795024329.736);
INSERT INTO "relet_queue_samples" VALUES('limited',0,0,0,0,0,NULL,1795024329.736);
CREATE TABLE relet_queues (
    queue        text primary key not null,
    paused       integer not null default 0,
    max_running  integer check (max_running >= 0),
    fair         integer not null default 0,  
    rated        integer not null default 0,  
    by_group     integer not null default 0,  
    last_group   text,  
    limited      integer not null generated always as (max_running is not null or fair or rated) stored
, declared text);
INSERT INTO "relet_queues" VALUES('limited',0,NULL,1,1,1,NULL,NULL);
INSERT INTO "relet_queues" VALUES('paused',1,NULL,0,0,0,NULL,NULL);
CREATE TABLE relet_rates (
    queue      text not null,
    group_key  text not null,
    rate       integer not null check (rate >= 0),
    per        real not null check (per > 0),
    primary key (queue, group_key)
);
INSERT INTO "relet_rates" VALUES('limited','*',5,1.0);
CREATE TABLE relet_ready_groups (
    queue      text not null,
    group_key  text not null,
    primary key (queue, group_key)
) without rowid;
INSERT INTO "relet_ready_groups" VALUES('limited','a');
INSERT INTO "relet_ready_groups" VALUES('limited','b');
CREATE TABLE relet_reruns (
    job       text primary key not null,
    rerun_of  text not null
) without rowid;
CREATE TABLE relet_schedules (
    name        text primary key not null,
    task        text not null,
    definition  text not null,
    declared    text,
    paused      integer not null default 0,
    next_at     real,  
    moved_at    real not null,  
    changed_at  real not null
);
INSERT INTO "relet_schedules" VALUES('report','report','{"draft":{"id":"01a1efc9-9bb6-71a1-be6e-229a9d1d98a2","task":"report","payload":"{}","queue":"default","priority":0,"run_at":null,"delay":null,"target":null,"group":null,"unique":null,"unique_for":null,"replace":false,"depends_on":[],"policy":{"max_attempts":4,"backoff":{"base":0.5,"max":30.0,"factor":2.0,"jitter":true},"lease":null,"timeout":null,"on_expired":"retry","on_failure":"hold","on_dependency_failure":"hold","follow_up":null},"context":null,"fresh":true,"start_by":null,"tags":[],"rerun_of":null},"cron":"0 3 * * *"}','{"draft":{"id":"","task":"report","payload":"{}","queue":"default","priority":0,"run_at":null,"delay":null,"target":null,"group":null,"unique":null,"unique_for":null,"replace":false,"depends_on":[],"policy":{"max_attempts":4,"backoff":{"base":0.5,"max":30.0,"factor":2.0,"jitter":true},"lease":null,"timeout":null,"on_expired":"retry","on_failure":"hold","on_dependency_failure":"hold","follow_up":null},"context":null,"fresh":true,"start_by":null,"tags":[],"rerun_of":null},"cron":"0 3 * * *"}',0,1795057200.0,1795024329.724,1795024329.724);
CREATE TABLE relet_sequence (
    single  integer primary key check (single = 1),
    last    integer not null
);
INSERT INTO "relet_sequence" VALUES(1,22);
CREATE TABLE relet_signals (
    job      text not null,
    name     text not null,
    value    text,
    sent_at  real not null,
    primary key (job, name)
);
CREATE TABLE relet_starts (
    queue      text not null,
    group_key  text not null,
    at         real not null,
    number     integer not null,
    primary key (queue, group_key, at)
);
CREATE TABLE relet_stats (
    step    integer not null,
    at      real not null,
    queue   text not null,
    name    text not null,
    bucket  integer not null,  
    peak    integer not null,  
    number  real not null,
    primary key (step, at, queue, name, bucket)
);
INSERT INTO "relet_stats" VALUES(60,1795024320.0,'','sampled',0,1,1.0);
INSERT INTO "relet_stats" VALUES(60,1795024320.0,'default','gauge.pending',0,1,1.0);
INSERT INTO "relet_stats" VALUES(60,1795024320.0,'default','gauge.queued',0,1,2.0);
INSERT INTO "relet_stats" VALUES(60,1795024320.0,'default','gauge.running',0,1,0.0);
INSERT INTO "relet_stats" VALUES(60,1795024320.0,'default','gauge.paused_jobs',0,1,0.0);
INSERT INTO "relet_stats" VALUES(60,1795024320.0,'default','gauge.failed',0,1,0.0);
INSERT INTO "relet_stats" VALUES(60,1795024320.0,'default','gauge.oldest',0,1,5.8500003814697265625e-01);
INSERT INTO "relet_stats" VALUES(60,1795024320.0,'limited','gauge.pending',0,1,0.0);
INSERT INTO "relet_stats" VALUES(60,1795024320.0,'limited','gauge.queued',0,1,0.0);
INSERT INTO "relet_stats" VALUES(60,1795024320.0,'limited','gauge.running',0,1,0.0);
INSERT INTO "relet_stats" VALUES(60,1795024320.0,'limited','gauge.paused_jobs',0,1,0.0);
INSERT INTO "relet_stats" VALUES(60,1795024320.0,'limited','gauge.failed',0,1,0.0);
INSERT INTO "relet_stats" VALUES(60,1795024320.0,'limited','gauge.oldest',0,1,0.0);
INSERT INTO "relet_stats" VALUES(-60,1795024320.0,'*','gauge.pending',0,1,1.0);
INSERT INTO "relet_stats" VALUES(-60,1795024320.0,'*','gauge.queued',0,1,2.0);
INSERT INTO "relet_stats" VALUES(-60,1795024320.0,'*','gauge.running',0,1,0.0);
INSERT INTO "relet_stats" VALUES(-60,1795024320.0,'*','gauge.paused_jobs',0,1,0.0);
INSERT INTO "relet_stats" VALUES(-60,1795024320.0,'*','gauge.failed',0,1,0.0);
INSERT INTO "relet_stats" VALUES(-60,1795024320.0,'*','gauge.oldest',0,1,5.8500003814697265625e-01);
CREATE TABLE relet_steps (
    job      text not null,
    kind     text not null check (kind in ('step', 'sleep', 'wait', 'missed')),
    name     text not null,
    result   text,
    until    real,
    done_at  real not null,
    primary key (job, kind, name)
);
INSERT INTO "relet_steps" VALUES('01a1efc9-9c50-7ecf-bb86-d144314f50c2','step','charge','"charged 7"',NULL,1795024330.409);
CREATE TABLE relet_tags (
    tag  text not null,
    job  text not null,
    primary key (tag, job)
) without rowid;
CREATE TABLE relet_ticks (
    schedule  text not null,
    tick      real not null,
    job       text,
    note      text,
    primary key (schedule, tick)
);
CREATE TABLE relet_workers (
    name        text primary key not null,
    host        text not null,
    pid         integer not null,
    about       text not null,  
    running     integer not null,
    stopping    integer not null,
    report      text not null,  
    started_at  real not null,
    seen_at     real not null
);
INSERT INTO "relet_workers" VALUES('vm:4436:592bf801','vm',4436,'{"name":"vm:4436:592bf801","host":"vm","pid":4436,"queues":["default"],"slots":10,"tasks":["approve","collect","die","double","first","refuse","report"],"lease":5.0,"version":"0.1.0"}',0,0,'244fd1ba-11b2-4755-9e52-9625c72066e4',1795024329.722,1795024329.722);
INSERT INTO "relet_workers" VALUES('vm:4451:41acbe14','vm',4451,'{"name":"vm:4451:41acbe14","host":"vm","pid":4451,"queues":["default"],"slots":10,"tasks":["approve","collect","die","double","first","refuse","report"],"lease":5.0,"version":"0.1.0"}',0,0,'9d3628ae-3a8e-44ee-a311-92278b9f5037',1795024330.38,1795024330.38);
INSERT INTO "relet_workers" VALUES('vm:4464:32989ab4','vm',4464,'{"name":"vm:4464:32989ab4","host":"vm","pid":4464,"queues":["abandoned"],"slots":10,"tasks":["approve","collect","die","double","first","refuse","report"],"lease":5.0,"version":"0.1.0"}',0,0,'11317404-be0e-49d8-af50-dd978d45b2fc',1795024330.993,1795024330.993);
CREATE INDEX relet_jobs_claim on relet_jobs (queue, suspect, rank, seq) where state = 'queued';
CREATE INDEX relet_jobs_tasks on relet_jobs (queue, task, suspect, rank, seq) where state = 'queued';
CREATE INDEX relet_jobs_suspect on relet_jobs (queue, suspect) where state = 'queued' and suspect > 0;
CREATE INDEX relet_jobs_group on relet_jobs (queue, suspect, group_key, rank, seq)
    where state = 'queued' and group_key is not null;
CREATE INDEX relet_jobs_due on relet_jobs (run_at, seq) where wait = 'time';
CREATE INDEX relet_jobs_line on relet_jobs (target, seq) where wait = 'target';
CREATE INDEX relet_jobs_leased on relet_jobs (expires_at) where expires_at is not null;
CREATE UNIQUE INDEX relet_jobs_holder on relet_jobs (target) where holds;
CREATE UNIQUE INDEX relet_jobs_chain on relet_jobs (chain) where position > 0;
CREATE INDEX relet_jobs_failed on relet_jobs (stopped_at) where state = 'failed';
CREATE INDEX relet_finished_chain on relet_finished (chain) where position > 0;
CREATE INDEX relet_finished_age on relet_finished (finished_at);
CREATE INDEX relet_keys_window on relet_keys (until) where until is not null;
CREATE INDEX relet_dependencies_open on relet_dependencies (depends_on, job) where state is null;
CREATE INDEX relet_starts_latest on relet_starts (queue, at);
CREATE INDEX relet_schedules_due on relet_schedules (next_at) where not paused;
CREATE INDEX relet_ticks_age on relet_ticks (tick);
CREATE INDEX relet_ticks_jobs on relet_ticks (schedule, tick) where job is not null;
CREATE INDEX relet_operations_age on relet_operations (at);
CREATE INDEX relet_ended_sessions_until on relet_ended_sessions (until);
CREATE INDEX relet_jobs_group_running on relet_jobs (queue, group_key)
    where state = 'running' and group_key is not null;
CREATE INDEX relet_jobs_start_by on relet_jobs (start_by) where start_by is not null and version = 0;
CREATE INDEX relet_tags_job on relet_tags (job);
CREATE INDEX relet_reruns_of on relet_reruns (rerun_of);
CREATE TRIGGER relet_group_of_new_job after insert on relet_jobs
when new.group_key is not null and new.state = 'queued'
begin
    insert or ignore into relet_ready_groups (queue, group_key) select new.queue, new.group_key
    where exists (select 1 from relet_group_limits l where l.queue = new.queue);
end;
CREATE TRIGGER relet_group_of_changed_job after update of state on relet_jobs
when new.group_key is not null and new.state <> 'running' and (new.state = 'queued' or old.state = 'running')
begin
    insert or ignore into relet_ready_groups (queue, group_key) select new.queue, new.group_key
    where exists (select 1 from relet_group_limits l where l.queue = new.queue);
end;
CREATE TRIGGER relet_group_of_ended_job after delete on relet_jobs
when old.group_key is not null and old.state = 'running'
begin
    insert or ignore into relet_ready_groups (queue, group_key) select old.queue, old.group_key
    where exists (select 1 from relet_group_limits l where l.queue = old.queue);
end;
CREATE VIEW relet_live_jobs as
    select state, wait, losses, token, holds, waits, expires_at, request, awaits, policy, progress, error,
           null as result, 0 as continued, stopped_at as finished_at, id, chain, created_at, run_at, attempt, max_attempts, version, position, priority, queue, task, payload, started_at, renewed_at, worker, target, group_key, unique_key, context, start_by,
           (select json_group_array(tag) from (
               select t.tag from relet_tags t where t.job = j.id order by t.tag)) as tags,
           (select r.rerun_of from relet_reruns r where r.job = j.id) as rerun_of,
           (select a.error_type from relet_attempts a where a.job = j.id and a.error = j.error
            order by a.version desc limit 1) as error_type
    from relet_jobs j;
CREATE VIEW relet_over_jobs as
    select state, null as wait, losses, token, 0 as holds, 0 as waits, null as expires_at, null as request,
           null as awaits, null as policy, null as progress, error, result, continued, finished_at, id, chain, created_at, run_at, attempt, max_attempts, version, position, priority, queue, task, payload, started_at, renewed_at, worker, target, group_key, unique_key, context,
           null as start_by,
           (select json_group_array(tag) from (
               select t.tag from relet_tags t where t.job = f.id order by t.tag)) as tags,
           (select r.rerun_of from relet_reruns r where r.job = f.id) as rerun_of,
           coalesce(f.error_type, (select a.error_type from relet_attempts a where a.job = f.id and a.error = f.error
            order by a.version desc limit 1)) as error_type
    from relet_finished f;
CREATE VIEW relet_all_jobs as select * from relet_live_jobs union all select * from relet_over_jobs;
DELETE FROM "sqlite_sequence";
INSERT INTO "sqlite_sequence" VALUES('relet_nudges',7);
INSERT INTO "sqlite_sequence" VALUES('relet_audit',2);
COMMIT;
