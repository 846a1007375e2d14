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
INSERT INTO "relet_attempts" VALUES('01a1efda-28f8-7f91-9f69-3757db24328b',1,1,'vm:9296:911dc10d',1795025415.762,1795025415.856,NULL,1795025420.762,'retried','ValueError: card declined

Traceback (most recent call last):
  File "/srv/tests/stored/shop.py", line 28, in refuse
    raise ValueError(reason)
ValueError: card declined
','builtins.ValueError');
INSERT INTO "relet_attempts" VALUES('01a1efda-28f8-7f91-9f69-3757db24328b',2,2,'vm:9296:911dc10d',1795025415.882,1795025415.897,NULL,1795025420.882,'failed','ValueError: card declined

Traceback (most recent call last):
  File "/srv/tests/stored/shop.py", line 28, in refuse
    raise ValueError(reason)
ValueError: card declined
','builtins.ValueError');
INSERT INTO "relet_attempts" VALUES('01a1efda-2f1c-73fc-95e0-f7f5c945bd01',1,1,'vm:9336:75d00f5f',1795025417.133,1795025417.146,NULL,1795025422.133,'snoozed',NULL,NULL);
CREATE TABLE relet_audit (
    seq      integer primary key autoincrement,
    id       text not null unique,  
    at       real not null,
    who      text not null,
    what     text not null,
    subject  text not null,
    detail   text
);
INSERT INTO "relet_audit" VALUES(1,'01a1efda-2f12-743f-bbe6-223fdef22674',1795025415.959,'ada','cancel','01a1efda-2f07-76ff-ad32-c65c58b0f829',NULL);
INSERT INTO "relet_audit" VALUES(2,'01a1efda-3811-7459-b460-611c96f1b227',1795025418.257,'ada','pause_queue','paused',NULL);
CREATE TABLE relet_dependencies (
    job         text not null,
    depends_on  text not null,  
    position    integer not null,
    state       text check (state in ('succeeded', 'failed', 'cancelled', 'deleted')),
    result      text,
    task        text,  
    primary key (job, depends_on)
);
INSERT INTO "relet_dependencies" VALUES('01a1efda-37f5-70e6-ae58-78eafea3a2e8','01a1efda-37c4-74a0-b68c-d1092a323b3c',0,NULL,NULL,NULL);
INSERT INTO "relet_dependencies" VALUES('01a1efda-37f5-70e6-ae58-78eafea3a2e8','01a1efda-37cc-7ad9-b0cd-c44e86219d81',1,NULL,NULL,NULL);
INSERT INTO "relet_dependencies" VALUES('01a1efda-37f5-70e6-ae58-78eafea3a2e8','01a1efda-37d4-7a17-baea-0660953f32e2',2,NULL,NULL,NULL);
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
INSERT INTO "relet_finished" VALUES('01a1efda-28f1-71a0-b636-cbe33c517f02','succeeded','default','double',0,NULL,NULL,'{"number":1}','2',NULL,1,4,0,1,'vm:9296:911dc10d','5d13d2df-3024-4047-ab58-c5f2d811936b','01a1efda-28f1-71a0-b636-cbe33c517f02',0,0,NULL,1795025414.388,1795025414.388,1795025415.762,NULL,NULL,1795025415.798,NULL);
INSERT INTO "relet_finished" VALUES('01a1efda-28f5-7c2a-86e7-bba89795b6ea','succeeded','default','first',0,NULL,NULL,'{"number":2}',NULL,NULL,1,4,0,1,'vm:9296:911dc10d','5d13d2df-3024-4047-ab58-c5f2d811936b','01a1efda-28f5-7c2a-86e7-bba89795b6ea',0,1,NULL,1795025414.389,1795025414.389,1795025415.762,NULL,NULL,1795025415.813,NULL);
INSERT INTO "relet_finished" VALUES('01a1efda-2e6b-79cb-aa57-7ac3850ff3ee','succeeded','default','double',0,NULL,NULL,'{"number":2}','4',NULL,1,4,0,1,'vm:9296:911dc10d','679ebe65-b216-4cc6-8c0b-3fbc3dffd517','01a1efda-28f5-7c2a-86e7-bba89795b6ea',1,0,NULL,1795025415.825,1795025415.825,1795025415.841,NULL,NULL,1795025415.876,NULL);
INSERT INTO "relet_finished" VALUES('01a1efda-2f07-76ff-ad32-c65c58b0f829','cancelled','default','double',0,NULL,NULL,'{"number":3}',NULL,NULL,0,4,0,0,NULL,NULL,'01a1efda-2f07-76ff-ad32-c65c58b0f829',0,0,NULL,1795025415.953,1795029015.953,NULL,NULL,NULL,1795025415.957,NULL);
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
INSERT INTO "relet_jobs" VALUES('01a1efda-28f8-7f91-9f69-3757db24328b',6,'failed',NULL,'default','refuse',0,0,'blocked',NULL,1,'{"reason":"card declined"}',1.79502541585856056211e+09,2,2,0,0,2,'{"backoff":[0.01,0.01,2.0,true]}',NULL,NULL,'c2bf2296-687c-435a-9f96-341c12124849',NULL,NULL,NULL,0,NULL,NULL,'ValueError: card declined

Traceback (most recent call last):
  File "/srv/tests/stored/shop.py", line 28, in refuse
    raise ValueError(reason)
ValueError: card declined
','01a1efda-28f8-7f91-9f69-3757db24328b',0,0,0,NULL,NULL,1,NULL,0,1795025414.402,1795025415.897,NULL);
INSERT INTO "relet_jobs" VALUES('01a1efda-2f1c-73fc-95e0-f7f5c945bd01',8,'pending','time','default','approve',0,0,NULL,NULL,0,'{"amount":7}',2111249417.147,0,4,0,0,1,NULL,NULL,NULL,'6f4f784c-a490-485a-964a-57d1c1fe21c8',NULL,NULL,NULL,0,NULL,NULL,NULL,'01a1efda-2f1c-73fc-95e0-f7f5c945bd01',0,0,0,'answer',NULL,0,NULL,0,1795025415.965,NULL,NULL);
INSERT INTO "relet_jobs" VALUES('01a1efda-33d5-759c-8d7b-976abfb4025e',9,'running',NULL,'abandoned','die',0,0,NULL,NULL,0,'{"folder":"/tmp/tmpmixr3ufy"}',1795025417.173,1,4,0,0,1,NULL,NULL,'vm:9398:e74180a2','d94af4cb-8c29-44ce-888c-15ede806361b',1795025423.151,NULL,1795025418.151,0,NULL,NULL,NULL,'01a1efda-33d5-759c-8d7b-976abfb4025e',0,0,0,NULL,NULL,0,NULL,0,1795025417.173,NULL,NULL);
INSERT INTO "relet_jobs" VALUES('01a1efda-37c4-74a0-b68c-d1092a323b3c',10,'queued',NULL,'waiting','double',0,0,NULL,NULL,0,'{"number":0}',1795025418.18,0,4,0,0,0,NULL,NULL,NULL,NULL,NULL,NULL,NULL,0,NULL,NULL,NULL,'01a1efda-37c4-74a0-b68c-d1092a323b3c',0,0,0,NULL,NULL,0,NULL,0,1795025418.18,NULL,NULL);
INSERT INTO "relet_jobs" VALUES('01a1efda-37cc-7ad9-b0cd-c44e86219d81',11,'queued',NULL,'waiting','double',1,-1,NULL,NULL,0,'{"number":1}',1795025418.189,0,4,0,0,0,NULL,NULL,NULL,NULL,NULL,NULL,NULL,0,NULL,NULL,NULL,'01a1efda-37cc-7ad9-b0cd-c44e86219d81',0,0,0,NULL,NULL,0,NULL,0,1795025418.189,NULL,NULL);
INSERT INTO "relet_jobs" VALUES('01a1efda-37d4-7a17-baea-0660953f32e2',12,'queued',NULL,'waiting','double',2,-2,NULL,NULL,0,'{"number":2}',1795025418.197,0,4,0,0,0,NULL,NULL,NULL,NULL,NULL,NULL,NULL,0,NULL,NULL,NULL,'01a1efda-37d4-7a17-baea-0660953f32e2',0,0,0,NULL,NULL,0,NULL,0,1795025418.197,NULL,NULL);
INSERT INTO "relet_jobs" VALUES('01a1efda-37d5-7d3a-8494-a4e924090b84',13,'pending','time','waiting','double',0,0,NULL,NULL,0,'{"number":10}',1795025419.198,0,4,0,0,0,NULL,NULL,NULL,NULL,NULL,NULL,NULL,0,NULL,NULL,NULL,'01a1efda-37d5-7d3a-8494-a4e924090b84',0,0,0,NULL,NULL,0,NULL,0,1795025418.198,NULL,NULL);
INSERT INTO "relet_jobs" VALUES('01a1efda-37dc-7fd8-9252-3dd79b041f42',14,'pending','target','waiting','double',0,0,'blocked',NULL,0,'{"number":11}',1795025418.205,0,4,0,0,0,NULL,NULL,NULL,NULL,NULL,NULL,NULL,0,NULL,NULL,NULL,'01a1efda-37dc-7fd8-9252-3dd79b041f42',0,0,0,NULL,NULL,0,NULL,0,1795025418.205,NULL,NULL);
INSERT INTO "relet_jobs" VALUES('01a1efda-37e1-71fc-9d1a-8c3a44d03daf',15,'queued',NULL,'waiting','double',0,0,NULL,NULL,0,'{"number":12}',1795025418.211,0,4,0,0,0,NULL,NULL,NULL,NULL,NULL,NULL,NULL,0,NULL,NULL,NULL,'01a1efda-37e1-71fc-9d1a-8c3a44d03daf',0,0,0,NULL,NULL,0,'once',0,1795025418.211,NULL,NULL);
INSERT INTO "relet_jobs" VALUES('01a1efda-37ec-7c29-b379-2575d1afdef0',16,'queued',NULL,'waiting','double',0,0,NULL,NULL,0,'{"number":13}',1795025418.224,0,4,0,0,0,NULL,NULL,NULL,NULL,NULL,NULL,NULL,0,NULL,NULL,NULL,'01a1efda-37ec-7c29-b379-2575d1afdef0',0,0,0,NULL,NULL,0,'window',1,1795025418.224,NULL,NULL);
INSERT INTO "relet_jobs" VALUES('01a1efda-37f5-70e6-ae58-78eafea3a2e8',17,'pending','jobs','waiting','collect',0,0,NULL,NULL,0,'{}',1795025418.231,0,4,0,0,0,NULL,NULL,NULL,NULL,NULL,NULL,NULL,0,NULL,NULL,NULL,'01a1efda-37f5-70e6-ae58-78eafea3a2e8',0,3,3,NULL,NULL,0,NULL,0,1795025418.231,NULL,NULL);
INSERT INTO "relet_jobs" VALUES('01a1efda-37fe-78c4-aca5-fceaeb871dfb',18,'paused',NULL,'waiting','double',0,0,NULL,NULL,0,'{"number":14}',1795025418.238,0,4,0,0,0,NULL,NULL,NULL,NULL,NULL,NULL,NULL,0,NULL,NULL,NULL,'01a1efda-37fe-78c4-aca5-fceaeb871dfb',0,0,0,NULL,NULL,0,NULL,0,1795025418.238,1795025418.243,NULL);
INSERT INTO "relet_jobs" VALUES('01a1efda-3809-78b6-ad84-70945f9475af',19,'queued',NULL,'paused','double',0,0,NULL,NULL,0,'{"number":15}',1795025418.249,0,4,0,0,0,NULL,NULL,NULL,NULL,NULL,NULL,NULL,0,NULL,NULL,NULL,'01a1efda-3809-78b6-ad84-70945f9475af',0,0,0,NULL,NULL,0,NULL,0,1795025418.249,NULL,NULL);
INSERT INTO "relet_jobs" VALUES('01a1efda-380a-7ad0-8550-4646c28e5188',20,'queued',NULL,'limited','double',0,0,NULL,'a',0,'{"number":0}',1795025418.25,0,4,0,0,0,NULL,NULL,NULL,NULL,NULL,NULL,NULL,0,NULL,NULL,NULL,'01a1efda-380a-7ad0-8550-4646c28e5188',0,0,0,NULL,NULL,0,NULL,0,1795025418.25,NULL,NULL);
INSERT INTO "relet_jobs" VALUES('01a1efda-380d-7b96-b5dd-aaa7fd206185',21,'queued',NULL,'limited','double',0,0,NULL,'a',0,'{"number":1}',1795025418.253,0,4,0,0,0,NULL,NULL,NULL,NULL,NULL,NULL,NULL,0,NULL,NULL,NULL,'01a1efda-380d-7b96-b5dd-aaa7fd206185',0,0,0,NULL,NULL,0,NULL,0,1795025418.253,NULL,NULL);
INSERT INTO "relet_jobs" VALUES('01a1efda-380e-7045-a1ef-da3e99c8678c',22,'queued',NULL,'limited','double',0,0,NULL,'b',0,'{"number":2}',1795025418.254,0,4,0,0,0,NULL,NULL,NULL,NULL,NULL,NULL,NULL,0,NULL,NULL,NULL,'01a1efda-380e-7045-a1ef-da3e99c8678c',0,0,0,NULL,NULL,0,NULL,0,1795025418.254,NULL,NULL);
CREATE TABLE relet_keys (
    key    text primary key not null,
    job    text not null,
    until  real
);
INSERT INTO "relet_keys" VALUES('once','01a1efda-37e1-71fc-9d1a-8c3a44d03daf',NULL);
INSERT INTO "relet_keys" VALUES('window','01a1efda-37ec-7c29-b379-2575d1afdef0',1795025478.223);
CREATE TABLE relet_migrations (version integer primary key, applied_at real not null, oldest integer, release text);
INSERT INTO "relet_migrations" VALUES(1,1.79502541435100293164e+09,1,'0.1.0');
INSERT INTO "relet_migrations" VALUES(2,1.79502541435498595232e+09,1,'0.1.0');
INSERT INTO "relet_migrations" VALUES(3,1.79502541435599184032e+09,1,'0.1.0');
INSERT INTO "relet_migrations" VALUES(4,1.7950254143600151539e+09,1,'0.1.0');
INSERT INTO "relet_migrations" VALUES(5,1.79502541436198663708e+09,1,'0.1.0');
CREATE TABLE relet_nudges (
    id      integer primary key autoincrement,
    kind    text not null check (kind in ('target', 'job', 'chain', 'signal')),
    key     text not null,
    beyond  text
);
INSERT INTO "relet_nudges" VALUES(6,'target','blocked',NULL);
INSERT INTO "relet_nudges" VALUES(7,'job','01a1efda-37f5-70e6-ae58-78eafea3a2e8',NULL);
CREATE TABLE relet_operations (
    id       text primary key,
    verb     text not null,
    subject  text not null,
    request  text,  
    outcome  text,  
    at       real not null
) without rowid;
INSERT INTO "relet_operations" VALUES('01a1efda-28dd-7edb-9b61-9f422f2320ea','limit_queue','limited',NULL,'{}',1795025414.377);
INSERT INTO "relet_operations" VALUES('01a1efda-2f12-71e3-99e9-36ed6369df8f','cancel','01a1efda-2f07-76ff-ad32-c65c58b0f829',NULL,'{"jobs":[{"id":"01a1efda-2f07-76ff-ad32-c65c58b0f829","task":"double","queue":"default","state":"cancelled","priority":0,"payload":"null","attempt":0,"max_attempts":4,"losses":0,"version":0,"chain":"01a1efda-2f07-76ff-ad32-c65c58b0f829","position":0,"created_at":"2026-11-18T18:10:15.953000Z","run_at":"2026-11-18T19:10:15.953000Z","started_at":null,"finished_at":"2026-11-18T18:10:15.957000Z","wait":null,"target":null,"holds":false,"unique":null,"worker":null,"expires_at":null,"request":null,"result":null,"error":null,"continued":false,"progress":null,"group":null,"awaits":null,"context":null,"renewed_at":null,"start_by":null,"tags":[],"rerun_of":null,"error_type":null,"existing":false}]}',1795025415.954);
INSERT INTO "relet_operations" VALUES('01a1efda-3800-768c-800e-462ad207cd31','pause','01a1efda-37fe-78c4-aca5-fceaeb871dfb',NULL,'{"jobs":[{"id":"01a1efda-37fe-78c4-aca5-fceaeb871dfb","task":"double","queue":"waiting","state":"paused","priority":0,"payload":"null","attempt":0,"max_attempts":4,"losses":0,"version":0,"chain":"01a1efda-37fe-78c4-aca5-fceaeb871dfb","position":0,"created_at":"2026-11-18T18:10:18.238000Z","run_at":"2026-11-18T18:10:18.238000Z","started_at":null,"finished_at":"2026-11-18T18:10:18.243000Z","wait":null,"target":null,"holds":false,"unique":null,"worker":null,"expires_at":null,"request":null,"result":null,"error":null,"continued":false,"progress":null,"group":null,"awaits":null,"context":null,"renewed_at":null,"start_by":null,"tags":[],"rerun_of":null,"error_type":null,"existing":false}]}',1795025418.241);
INSERT INTO "relet_operations" VALUES('01a1efda-3811-7567-99e1-c21e896f3104','pause_queue','paused',NULL,'{}',1795025418.257);
CREATE TABLE relet_pulse (
    single       integer primary key check (single = 1),
    touched_at   real not null default 0,
    grace_until  real not null default 0
, tables text, period_from real not null default 0, uptime real not null default 0, reap_before real not null default 0);
INSERT INTO "relet_pulse" VALUES(1,1795025418.075,1.79502541735466670993e+09,NULL,0.0,2.38680903692147694528e+00,0.0);
CREATE TABLE relet_quarantine (
    single  integer primary key check (single = 1),
    worker  text,
    until   real not null default 0
);
INSERT INTO "relet_quarantine" VALUES(1,NULL,1795025421.102);
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
INSERT INTO "relet_queue_samples" VALUES('default',0,3,0,0,0,1.35800004005432128906e+00,1795025415.747);
INSERT INTO "relet_queue_samples" VALUES('limited',0,0,0,0,0,NULL,1795025415.747);
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
INSERT INTO "relet_schedules" VALUES('report','report','{"draft":{"id":"01a1efda-2d53-700e-86bc-46c21acbc77b","task":"report","payload":"{}","queue":"default","priority":0,"run_at":null,"delay":null,"target":null,"group":null,"unique":null,"unique_for":null,"replace":false,"depends_on":[],"policy":{"max_attempts":4,"backoff":{"base":0.5,"max":30.0,"factor":2.0,"jitter":true},"lease":null,"timeout":null,"on_expired":"retry","on_failure":"hold","on_dependency_failure":"hold","follow_up":null},"context":null,"fresh":true,"start_by":null,"tags":[],"rerun_of":null},"cron":"0 3 * * *"}','{"draft":{"id":"","task":"report","payload":"{}","queue":"default","priority":0,"run_at":null,"delay":null,"target":null,"group":null,"unique":null,"unique_for":null,"replace":false,"depends_on":[],"policy":{"max_attempts":4,"backoff":{"base":0.5,"max":30.0,"factor":2.0,"jitter":true},"lease":null,"timeout":null,"on_expired":"retry","on_failure":"hold","on_dependency_failure":"hold","follow_up":null},"context":null,"fresh":true,"start_by":null,"tags":[],"rerun_of":null},"cron":"0 3 * * *"}',0,1795057200.0,1795025415.707,1795025415.707);
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
INSERT INTO "relet_stats" VALUES(60,1795025400.0,'','sampled',0,1,1.0);
INSERT INTO "relet_stats" VALUES(60,1795025400.0,'default','gauge.pending',0,1,0.0);
INSERT INTO "relet_stats" VALUES(60,1795025400.0,'default','gauge.queued',0,1,3.0);
INSERT INTO "relet_stats" VALUES(60,1795025400.0,'default','gauge.running',0,1,0.0);
INSERT INTO "relet_stats" VALUES(60,1795025400.0,'default','gauge.paused_jobs',0,1,0.0);
INSERT INTO "relet_stats" VALUES(60,1795025400.0,'default','gauge.failed',0,1,0.0);
INSERT INTO "relet_stats" VALUES(60,1795025400.0,'default','gauge.oldest',0,1,1.35800004005432128906e+00);
INSERT INTO "relet_stats" VALUES(60,1795025400.0,'limited','gauge.pending',0,1,0.0);
INSERT INTO "relet_stats" VALUES(60,1795025400.0,'limited','gauge.queued',0,1,0.0);
INSERT INTO "relet_stats" VALUES(60,1795025400.0,'limited','gauge.running',0,1,0.0);
INSERT INTO "relet_stats" VALUES(60,1795025400.0,'limited','gauge.paused_jobs',0,1,0.0);
INSERT INTO "relet_stats" VALUES(60,1795025400.0,'limited','gauge.failed',0,1,0.0);
INSERT INTO "relet_stats" VALUES(60,1795025400.0,'limited','gauge.oldest',0,1,0.0);
INSERT INTO "relet_stats" VALUES(-60,1795025400.0,'*','gauge.pending',0,1,0.0);
INSERT INTO "relet_stats" VALUES(-60,1795025400.0,'*','gauge.queued',0,1,3.0);
INSERT INTO "relet_stats" VALUES(-60,1795025400.0,'*','gauge.running',0,1,0.0);
INSERT INTO "relet_stats" VALUES(-60,1795025400.0,'*','gauge.paused_jobs',0,1,0.0);
INSERT INTO "relet_stats" VALUES(-60,1795025400.0,'*','gauge.failed',0,1,0.0);
INSERT INTO "relet_stats" VALUES(-60,1795025400.0,'*','gauge.oldest',0,1,1.35800004005432128906e+00);
CREATE TABLE relet_steps (
    job      text not null,
    kind     text not null check (kind in ('step', 'sleep', 'wait', 'missed')),
    name     text not null,
    result   text,
    until    real,
    done_at  real not null,
    primary key (job, kind, name)
);
INSERT INTO "relet_steps" VALUES('01a1efda-2f1c-73fc-95e0-f7f5c945bd01','step','charge','"charged 7"',NULL,1795025417.136);
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
INSERT INTO "relet_workers" VALUES('vm:9296:911dc10d','vm',9296,'{"name":"vm:9296:911dc10d","host":"vm","pid":9296,"queues":["default"],"slots":10,"tasks":["approve","collect","die","double","first","refuse","report"],"lease":5.0,"version":"0.1.0"}',0,0,'712d7497-3ea8-41ce-8188-4d02ce0cfd0f',1795025415.705,1795025415.705);
INSERT INTO "relet_workers" VALUES('vm:9336:75d00f5f','vm',9336,'{"name":"vm:9336:75d00f5f","host":"vm","pid":9336,"queues":["default"],"slots":10,"tasks":["approve","collect","die","double","first","refuse","report"],"lease":5.0,"version":"0.1.0"}',0,0,'b8d05457-c4ee-493d-9091-a41fa304c05b',1795025417.103,1795025417.103);
INSERT INTO "relet_workers" VALUES('vm:9398:e74180a2','vm',9398,'{"name":"vm:9398:e74180a2","host":"vm","pid":9398,"queues":["abandoned"],"slots":10,"tasks":["approve","collect","die","double","first","refuse","report"],"lease":5.0,"version":"0.1.0"}',0,0,'a560e833-f1ee-469e-9c82-f0c8f4a3f433',1795025418.101,1795025418.101);
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
