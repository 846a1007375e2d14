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
INSERT INTO "relet_attempts" VALUES('01a1ee7d-3d1b-7fbf-b6fc-1a89a803414a',1,1,'vm:17824:2c90b5ee',1795002548.35,1795002548.391,NULL,1795002553.35,'retried','ValueError: card declined

Traceback (most recent call last):
  File "/srv/tests/stored/shop.py", line 28, in refuse
    raise ValueError(reason)
ValueError: card declined
','builtins.ValueError');
INSERT INTO "relet_attempts" VALUES('01a1ee7d-3d1b-7fbf-b6fc-1a89a803414a',2,2,'vm:17824:2c90b5ee',1795002548.402,1795002548.436,NULL,1795002553.402,'failed','ValueError: card declined

Traceback (most recent call last):
  File "/srv/tests/stored/shop.py", line 28, in refuse
    raise ValueError(reason)
ValueError: card declined
','builtins.ValueError');
INSERT INTO "relet_attempts" VALUES('01a1ee7d-4100-7817-8500-92219de9c7d4',1,1,'vm:17839:4a904316',1795002549.376,1795002549.384,NULL,1795002554.376,'snoozed',NULL,NULL);
CREATE TABLE relet_audit (
    seq      integer primary key autoincrement,
    id       text not null unique,  
    at       real not null,
    who      text not null,
    what     text not null,
    subject  text not null,
    detail   text
);
INSERT INTO "relet_audit" VALUES(1,'01a1ee7d-40fb-7674-94ff-e326a1aff70b',1795002548.479,'ada','cancel','01a1ee7d-40f6-7987-94b4-f303abcf572f',NULL);
INSERT INTO "relet_audit" VALUES(2,'01a1ee7d-488b-7fcb-b3cb-c84d88c7ecce',1795002550.411,'ada','pause_queue','paused',NULL);
CREATE TABLE relet_dependencies (
    job         text not null,
    depends_on  text not null,  
    position    integer not null,
    state       text check (state in ('succeeded', 'failed', 'cancelled', 'deleted')),
    result      text,
    task        text,  
    primary key (job, depends_on)
);
INSERT INTO "relet_dependencies" VALUES('01a1ee7d-487d-7ce4-bbae-7d5ac6316335','01a1ee7d-4870-74d4-a493-15542c575cb1',0,NULL,NULL,NULL);
INSERT INTO "relet_dependencies" VALUES('01a1ee7d-487d-7ce4-bbae-7d5ac6316335','01a1ee7d-4871-7a5e-9d9f-75f9318061e1',1,NULL,NULL,NULL);
INSERT INTO "relet_dependencies" VALUES('01a1ee7d-487d-7ce4-bbae-7d5ac6316335','01a1ee7d-4872-7488-8db7-88aacac6920f',2,NULL,NULL,NULL);
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
INSERT INTO "relet_finished" VALUES('01a1ee7d-3d18-7776-add7-4c3ff953f2b8','succeeded','default','double',0,NULL,NULL,'{"number":1}','2',NULL,1,4,0,1,'vm:17824:2c90b5ee','bacaa3ce-9064-48b7-bfd0-2b89990dc00f','01a1ee7d-3d18-7776-add7-4c3ff953f2b8',0,0,NULL,1795002547.481,1795002547.481,1795002548.35,NULL,NULL,1795002548.376,NULL);
INSERT INTO "relet_finished" VALUES('01a1ee7d-3d1a-7194-bf2e-d5353a42a65c','succeeded','default','first',0,NULL,NULL,'{"number":2}',NULL,NULL,1,4,0,1,'vm:17824:2c90b5ee','bacaa3ce-9064-48b7-bfd0-2b89990dc00f','01a1ee7d-3d1a-7194-bf2e-d5353a42a65c',0,1,NULL,1795002547.482,1795002547.482,1795002548.35,NULL,NULL,1795002548.386,NULL);
INSERT INTO "relet_finished" VALUES('01a1ee7d-4082-7316-95fc-962da560712f','succeeded','default','double',0,NULL,NULL,'{"number":2}','4',NULL,1,4,0,1,'vm:17824:2c90b5ee','f965f11b-9c46-48aa-ac8b-8c9c1fbea308','01a1ee7d-3d1a-7194-bf2e-d5353a42a65c',1,0,NULL,1795002548.388,1795002548.388,1795002548.394,NULL,NULL,1795002548.405,NULL);
INSERT INTO "relet_finished" VALUES('01a1ee7d-40f6-7987-94b4-f303abcf572f','cancelled','default','double',0,NULL,NULL,'{"number":3}',NULL,NULL,0,4,0,0,NULL,NULL,'01a1ee7d-40f6-7987-94b4-f303abcf572f',0,0,NULL,1795002548.474,1795006148.474,NULL,NULL,NULL,1795002548.477,NULL);
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
INSERT INTO "relet_jobs" VALUES('01a1ee7d-3d1b-7fbf-b6fc-1a89a803414a',6,'failed',NULL,'default','refuse',0,0,'blocked',NULL,1,'{"reason":"card declined"}',1.79500254839778804779e+09,2,2,0,0,2,'{"backoff":[0.01,0.01,2.0,true]}',NULL,NULL,'9e6c7b74-ec33-4d48-a66c-730a517473c5',NULL,NULL,NULL,0,NULL,NULL,'ValueError: card declined

Traceback (most recent call last):
  File "/srv/tests/stored/shop.py", line 28, in refuse
    raise ValueError(reason)
ValueError: card declined
','01a1ee7d-3d1b-7fbf-b6fc-1a89a803414a',0,0,0,NULL,NULL,1,NULL,0,1795002547.486,1795002548.436,NULL);
INSERT INTO "relet_jobs" VALUES('01a1ee7d-4100-7817-8500-92219de9c7d4',8,'pending','time','default','approve',0,0,NULL,NULL,0,'{"amount":7}',2111226549.385,0,4,0,0,1,NULL,NULL,NULL,'56a62f5e-ca91-422c-b16f-943529d20868',NULL,NULL,NULL,0,NULL,NULL,NULL,'01a1ee7d-4100-7817-8500-92219de9c7d4',0,0,0,'answer',NULL,0,NULL,0,1795002548.481,NULL,NULL);
INSERT INTO "relet_jobs" VALUES('01a1ee7d-449c-77ff-8aab-7caf835218c6',9,'running',NULL,'abandoned','die',0,0,NULL,NULL,0,'{"folder":"/tmp/tmpunjxa__s"}',1795002549.404,1,4,0,0,1,NULL,NULL,'vm:17852:3140621b','6b34c850-fd0b-4d68-ad2f-cc3b11be4e1c',1795002555.371,NULL,1795002550.371,0,NULL,NULL,NULL,'01a1ee7d-449c-77ff-8aab-7caf835218c6',0,0,0,NULL,NULL,0,NULL,0,1795002549.404,NULL,NULL);
INSERT INTO "relet_jobs" VALUES('01a1ee7d-4870-74d4-a493-15542c575cb1',10,'queued',NULL,'waiting','double',0,0,NULL,NULL,0,'{"number":0}',1795002550.384,0,4,0,0,0,NULL,NULL,NULL,NULL,NULL,NULL,NULL,0,NULL,NULL,NULL,'01a1ee7d-4870-74d4-a493-15542c575cb1',0,0,0,NULL,NULL,0,NULL,0,1795002550.384,NULL,NULL);
INSERT INTO "relet_jobs" VALUES('01a1ee7d-4871-7a5e-9d9f-75f9318061e1',11,'queued',NULL,'waiting','double',1,-1,NULL,NULL,0,'{"number":1}',1795002550.385,0,4,0,0,0,NULL,NULL,NULL,NULL,NULL,NULL,NULL,0,NULL,NULL,NULL,'01a1ee7d-4871-7a5e-9d9f-75f9318061e1',0,0,0,NULL,NULL,0,NULL,0,1795002550.385,NULL,NULL);
INSERT INTO "relet_jobs" VALUES('01a1ee7d-4872-7488-8db7-88aacac6920f',12,'queued',NULL,'waiting','double',2,-2,NULL,NULL,0,'{"number":2}',1795002550.386,0,4,0,0,0,NULL,NULL,NULL,NULL,NULL,NULL,NULL,0,NULL,NULL,NULL,'01a1ee7d-4872-7488-8db7-88aacac6920f',0,0,0,NULL,NULL,0,NULL,0,1795002550.386,NULL,NULL);
INSERT INTO "relet_jobs" VALUES('01a1ee7d-4873-7cb4-9cf3-769b65e361bb',13,'pending','time','waiting','double',0,0,NULL,NULL,0,'{"number":10}',1795002551.387,0,4,0,0,0,NULL,NULL,NULL,NULL,NULL,NULL,NULL,0,NULL,NULL,NULL,'01a1ee7d-4873-7cb4-9cf3-769b65e361bb',0,0,0,NULL,NULL,0,NULL,0,1795002550.387,NULL,NULL);
INSERT INTO "relet_jobs" VALUES('01a1ee7d-4875-7886-b947-e4d4a874a45c',14,'pending','target','waiting','double',0,0,'blocked',NULL,0,'{"number":11}',1795002550.389,0,4,0,0,0,NULL,NULL,NULL,NULL,NULL,NULL,NULL,0,NULL,NULL,NULL,'01a1ee7d-4875-7886-b947-e4d4a874a45c',0,0,0,NULL,NULL,0,NULL,0,1795002550.389,NULL,NULL);
INSERT INTO "relet_jobs" VALUES('01a1ee7d-4876-7484-ac65-887096e8aa38',15,'queued',NULL,'waiting','double',0,0,NULL,NULL,0,'{"number":12}',1795002550.392,0,4,0,0,0,NULL,NULL,NULL,NULL,NULL,NULL,NULL,0,NULL,NULL,NULL,'01a1ee7d-4876-7484-ac65-887096e8aa38',0,0,0,NULL,NULL,0,'once',0,1795002550.392,NULL,NULL);
INSERT INTO "relet_jobs" VALUES('01a1ee7d-4879-7a72-a742-62b76f418450',16,'queued',NULL,'waiting','double',0,0,NULL,NULL,0,'{"number":13}',1795002550.394,0,4,0,0,0,NULL,NULL,NULL,NULL,NULL,NULL,NULL,0,NULL,NULL,NULL,'01a1ee7d-4879-7a72-a742-62b76f418450',0,0,0,NULL,NULL,0,'window',1,1795002550.394,NULL,NULL);
INSERT INTO "relet_jobs" VALUES('01a1ee7d-487d-7ce4-bbae-7d5ac6316335',17,'pending','jobs','waiting','collect',0,0,NULL,NULL,0,'{}',1795002550.398,0,4,0,0,0,NULL,NULL,NULL,NULL,NULL,NULL,NULL,0,NULL,NULL,NULL,'01a1ee7d-487d-7ce4-bbae-7d5ac6316335',0,3,3,NULL,NULL,0,NULL,0,1795002550.398,NULL,NULL);
INSERT INTO "relet_jobs" VALUES('01a1ee7d-4880-79b2-b6bd-642e77f88e0a',18,'paused',NULL,'waiting','double',0,0,NULL,NULL,0,'{"number":14}',1795002550.4,0,4,0,0,0,NULL,NULL,NULL,NULL,NULL,NULL,NULL,0,NULL,NULL,NULL,'01a1ee7d-4880-79b2-b6bd-642e77f88e0a',0,0,0,NULL,NULL,0,NULL,0,1795002550.4,1795002550.404,NULL);
INSERT INTO "relet_jobs" VALUES('01a1ee7d-4886-7c3b-8eb2-13184ca5866f',19,'queued',NULL,'paused','double',0,0,NULL,NULL,0,'{"number":15}',1795002550.406,0,4,0,0,0,NULL,NULL,NULL,NULL,NULL,NULL,NULL,0,NULL,NULL,NULL,'01a1ee7d-4886-7c3b-8eb2-13184ca5866f',0,0,0,NULL,NULL,0,NULL,0,1795002550.406,NULL,NULL);
INSERT INTO "relet_jobs" VALUES('01a1ee7d-4887-7418-852e-4004a3874c06',20,'queued',NULL,'limited','double',0,0,NULL,'a',0,'{"number":0}',1795002550.407,0,4,0,0,0,NULL,NULL,NULL,NULL,NULL,NULL,NULL,0,NULL,NULL,NULL,'01a1ee7d-4887-7418-852e-4004a3874c06',0,0,0,NULL,NULL,0,NULL,0,1795002550.407,NULL,NULL);
INSERT INTO "relet_jobs" VALUES('01a1ee7d-4888-7393-abd4-d314822898fd',21,'queued',NULL,'limited','double',0,0,NULL,'a',0,'{"number":1}',1795002550.409,0,4,0,0,0,NULL,NULL,NULL,NULL,NULL,NULL,NULL,0,NULL,NULL,NULL,'01a1ee7d-4888-7393-abd4-d314822898fd',0,0,0,NULL,NULL,0,NULL,0,1795002550.409,NULL,NULL);
INSERT INTO "relet_jobs" VALUES('01a1ee7d-4889-7526-b3a2-0d03d5aedeed',22,'queued',NULL,'limited','double',0,0,NULL,'b',0,'{"number":2}',1795002550.41,0,4,0,0,0,NULL,NULL,NULL,NULL,NULL,NULL,NULL,0,NULL,NULL,NULL,'01a1ee7d-4889-7526-b3a2-0d03d5aedeed',0,0,0,NULL,NULL,0,NULL,0,1795002550.41,NULL,NULL);
CREATE TABLE relet_keys (
    key    text primary key not null,
    job    text not null,
    until  real
);
INSERT INTO "relet_keys" VALUES('once','01a1ee7d-4876-7484-ac65-887096e8aa38',NULL);
INSERT INTO "relet_keys" VALUES('window','01a1ee7d-4879-7a72-a742-62b76f418450',1795002610.394);
CREATE TABLE relet_migrations (version integer primary key, applied_at real not null, oldest integer, release text);
INSERT INTO "relet_migrations" VALUES(1,1.79500254744598579403e+09,1,'0.1.0');
INSERT INTO "relet_migrations" VALUES(2,1.79500254745101475717e+09,1,'0.1.0');
INSERT INTO "relet_migrations" VALUES(3,1.79500254745399212834e+09,1,'0.1.0');
INSERT INTO "relet_migrations" VALUES(4,1.79500254745700955393e+09,1,'0.1.0');
CREATE TABLE relet_nudges (
    id      integer primary key autoincrement,
    kind    text not null check (kind in ('target', 'job', 'chain', 'signal')),
    key     text not null,
    beyond  text
);
INSERT INTO "relet_nudges" VALUES(6,'target','blocked',NULL);
INSERT INTO "relet_nudges" VALUES(7,'job','01a1ee7d-487d-7ce4-bbae-7d5ac6316335',NULL);
CREATE TABLE relet_operations (
    id       text primary key,
    verb     text not null,
    subject  text not null,
    request  text,  
    outcome  text,  
    at       real not null
) without rowid;
INSERT INTO "relet_operations" VALUES('01a1ee7d-3d08-7bee-8b35-bc6d5251c61c','limit_queue','limited',NULL,'{}',1795002547.473);
INSERT INTO "relet_operations" VALUES('01a1ee7d-40fb-7ef0-9a7d-58a2b3b74a60','cancel','01a1ee7d-40f6-7987-94b4-f303abcf572f',NULL,'{"jobs":[{"id":"01a1ee7d-40f6-7987-94b4-f303abcf572f","task":"double","queue":"default","state":"cancelled","priority":0,"payload":"null","attempt":0,"max_attempts":4,"losses":0,"version":0,"chain":"01a1ee7d-40f6-7987-94b4-f303abcf572f","position":0,"created_at":"2026-11-18T11:49:08.474000Z","run_at":"2026-11-18T12:49:08.474000Z","started_at":null,"finished_at":"2026-11-18T11:49:08.477000Z","wait":null,"target":null,"holds":false,"unique":null,"worker":null,"expires_at":null,"request":null,"result":null,"error":null,"continued":false,"progress":null,"group":null,"awaits":null,"context":null,"renewed_at":null,"start_by":null,"tags":[],"rerun_of":null,"error_type":null,"existing":false}]}',1795002548.476);
INSERT INTO "relet_operations" VALUES('01a1ee7d-4881-7fe3-b173-acba096e2588','pause','01a1ee7d-4880-79b2-b6bd-642e77f88e0a',NULL,'{"jobs":[{"id":"01a1ee7d-4880-79b2-b6bd-642e77f88e0a","task":"double","queue":"waiting","state":"paused","priority":0,"payload":"null","attempt":0,"max_attempts":4,"losses":0,"version":0,"chain":"01a1ee7d-4880-79b2-b6bd-642e77f88e0a","position":0,"created_at":"2026-11-18T11:49:10.400000Z","run_at":"2026-11-18T11:49:10.400000Z","started_at":null,"finished_at":"2026-11-18T11:49:10.404000Z","wait":null,"target":null,"holds":false,"unique":null,"worker":null,"expires_at":null,"request":null,"result":null,"error":null,"continued":false,"progress":null,"group":null,"awaits":null,"context":null,"renewed_at":null,"start_by":null,"tags":[],"rerun_of":null,"error_type":null,"existing":false}]}',1795002550.401);
INSERT INTO "relet_operations" VALUES('01a1ee7d-488b-7dfd-ad7d-90ffd0df9f9d','pause_queue','paused',NULL,'{}',1795002550.411);
CREATE TABLE relet_pulse (
    single       integer primary key check (single = 1),
    touched_at   real not null default 0,
    grace_until  real not null default 0
, tables text);
INSERT INTO "relet_pulse" VALUES(1,1795002550.349,1.79500254998366665839e+09,NULL);
CREATE TABLE relet_quarantine (
    single  integer primary key check (single = 1),
    worker  text,
    until   real not null default 0
);
INSERT INTO "relet_quarantine" VALUES(1,NULL,1795002553.357);
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
INSERT INTO "relet_queue_samples" VALUES('default',1,2,0,0,0,8.5599994659423828125e-01,1795002548.345);
INSERT INTO "relet_queue_samples" VALUES('limited',0,0,0,0,0,NULL,1795002548.345);
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
INSERT INTO "relet_schedules" VALUES('report','report','{"draft":{"id":"01a1ee7d-4029-7007-8ff8-c631c7137487","task":"report","payload":"{}","queue":"default","priority":0,"run_at":null,"delay":null,"target":null,"group":null,"unique":null,"unique_for":null,"replace":false,"depends_on":[],"policy":{"max_attempts":4,"backoff":{"base":0.5,"max":30.0,"factor":2.0,"jitter":true},"lease":null,"timeout":null,"on_expired":"retry","on_failure":"hold","on_dependency_failure":"hold","follow_up":null},"context":null,"fresh":true,"start_by":null,"tags":[],"rerun_of":null},"cron":"0 3 * * *"}','{"draft":{"id":"","task":"report","payload":"{}","queue":"default","priority":0,"run_at":null,"delay":null,"target":null,"group":null,"unique":null,"unique_for":null,"replace":false,"depends_on":[],"policy":{"max_attempts":4,"backoff":{"base":0.5,"max":30.0,"factor":2.0,"jitter":true},"lease":null,"timeout":null,"on_expired":"retry","on_failure":"hold","on_dependency_failure":"hold","follow_up":null},"context":null,"fresh":true,"start_by":null,"tags":[],"rerun_of":null},"cron":"0 3 * * *"}',0,1795057200.0,1795002548.323,1795002548.323);
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
INSERT INTO "relet_stats" VALUES(60,1795002540.0,'','sampled',0,1,1.0);
INSERT INTO "relet_stats" VALUES(60,1795002540.0,'default','gauge.pending',0,1,1.0);
INSERT INTO "relet_stats" VALUES(60,1795002540.0,'default','gauge.queued',0,1,2.0);
INSERT INTO "relet_stats" VALUES(60,1795002540.0,'default','gauge.running',0,1,0.0);
INSERT INTO "relet_stats" VALUES(60,1795002540.0,'default','gauge.paused_jobs',0,1,0.0);
INSERT INTO "relet_stats" VALUES(60,1795002540.0,'default','gauge.failed',0,1,0.0);
INSERT INTO "relet_stats" VALUES(60,1795002540.0,'default','gauge.oldest',0,1,8.5599994659423828125e-01);
INSERT INTO "relet_stats" VALUES(60,1795002540.0,'limited','gauge.pending',0,1,0.0);
INSERT INTO "relet_stats" VALUES(60,1795002540.0,'limited','gauge.queued',0,1,0.0);
INSERT INTO "relet_stats" VALUES(60,1795002540.0,'limited','gauge.running',0,1,0.0);
INSERT INTO "relet_stats" VALUES(60,1795002540.0,'limited','gauge.paused_jobs',0,1,0.0);
INSERT INTO "relet_stats" VALUES(60,1795002540.0,'limited','gauge.failed',0,1,0.0);
INSERT INTO "relet_stats" VALUES(60,1795002540.0,'limited','gauge.oldest',0,1,0.0);
INSERT INTO "relet_stats" VALUES(-60,1795002540.0,'*','gauge.pending',0,1,1.0);
INSERT INTO "relet_stats" VALUES(-60,1795002540.0,'*','gauge.queued',0,1,2.0);
INSERT INTO "relet_stats" VALUES(-60,1795002540.0,'*','gauge.running',0,1,0.0);
INSERT INTO "relet_stats" VALUES(-60,1795002540.0,'*','gauge.paused_jobs',0,1,0.0);
INSERT INTO "relet_stats" VALUES(-60,1795002540.0,'*','gauge.failed',0,1,0.0);
INSERT INTO "relet_stats" VALUES(-60,1795002540.0,'*','gauge.oldest',0,1,8.5599994659423828125e-01);
CREATE TABLE relet_steps (
    job      text not null,
    kind     text not null check (kind in ('step', 'sleep', 'wait', 'missed')),
    name     text not null,
    result   text,
    until    real,
    done_at  real not null,
    primary key (job, kind, name)
);
INSERT INTO "relet_steps" VALUES('01a1ee7d-4100-7817-8500-92219de9c7d4','step','charge','"charged 7"',NULL,1795002549.38);
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
INSERT INTO "relet_workers" VALUES('vm:17824:2c90b5ee','vm',17824,'{"name":"vm:17824:2c90b5ee","host":"vm","pid":17824,"queues":["default"],"slots":10,"tasks":["approve","collect","die","double","first","refuse","report"],"lease":5.0,"version":"0.1.0"}',0,0,'85f90b2e-7533-4b16-aa43-2e834763c015',1795002548.319,1795002548.319);
INSERT INTO "relet_workers" VALUES('vm:17839:4a904316','vm',17839,'{"name":"vm:17839:4a904316","host":"vm","pid":17839,"queues":["default"],"slots":10,"tasks":["approve","collect","die","double","first","refuse","report"],"lease":5.0,"version":"0.1.0"}',0,0,'8748f2b9-730e-4d5f-9afd-917b323601da',1795002549.357,1795002549.357);
INSERT INTO "relet_workers" VALUES('vm:17852:3140621b','vm',17852,'{"name":"vm:17852:3140621b","host":"vm","pid":17852,"queues":["abandoned"],"slots":10,"tasks":["approve","collect","die","double","first","refuse","report"],"lease":5.0,"version":"0.1.0"}',0,0,'d5ca3abd-9877-4f03-96c6-c225895f740f',1795002550.356,1795002550.356);
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
