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
INSERT INTO "relet_attempts" VALUES('01a1f0ed-6fdc-7af9-b8a7-7f19a5a7c374',1,1,'vm:18391:6df27ba3',1795043455.511,1795043455.546,NULL,1795043460.511,'retried','ValueError: card declined

Traceback (most recent call last):
  File "/srv/tests/stored/shop.py", line 28, in refuse
    raise ValueError(reason)
ValueError: card declined
','builtins.ValueError');
INSERT INTO "relet_attempts" VALUES('01a1f0ed-6fdc-7af9-b8a7-7f19a5a7c374',2,2,'vm:18391:6df27ba3',1795043455.559,1795043455.564,NULL,1795043460.559,'failed','ValueError: card declined

Traceback (most recent call last):
  File "/srv/tests/stored/shop.py", line 28, in refuse
    raise ValueError(reason)
ValueError: card declined
','builtins.ValueError');
INSERT INTO "relet_attempts" VALUES('01a1f0ed-7260-71fc-8448-8c8f663b571f',1,1,'vm:18415:6589292b',1795043455.918,1795043455.94,NULL,1795043460.918,'snoozed',NULL,NULL);
CREATE TABLE relet_audit (
    seq      integer primary key autoincrement,
    id       text not null unique,  
    at       real not null,
    who      text not null,
    what     text not null,
    subject  text not null,
    detail   text
);
INSERT INTO "relet_audit" VALUES(1,'01a1f0ed-7259-7d36-98c6-b82640a2f135',1795043455.579,'ada','cancel','01a1f0ed-7256-70c5-8841-23b417fcb61a',NULL);
INSERT INTO "relet_audit" VALUES(2,'01a1f0ed-7557-7103-b16a-a86497d8f801',1795043456.343,'ada','pause_queue','paused',NULL);
CREATE TABLE relet_dependencies (
    job         text not null,
    depends_on  text not null,  
    position    integer not null,
    state       text check (state in ('succeeded', 'failed', 'cancelled', 'deleted')),
    result      text,
    task        text,  
    primary key (job, depends_on)
);
INSERT INTO "relet_dependencies" VALUES('01a1f0ed-752b-7f55-9e45-0921f581c0c5','01a1f0ed-7519-70e9-8007-5b33d5bf3097',0,NULL,NULL,NULL);
INSERT INTO "relet_dependencies" VALUES('01a1f0ed-752b-7f55-9e45-0921f581c0c5','01a1f0ed-751b-76d1-971b-ce313e3639c9',1,NULL,NULL,NULL);
INSERT INTO "relet_dependencies" VALUES('01a1f0ed-752b-7f55-9e45-0921f581c0c5','01a1f0ed-751d-7f01-9d93-d1210db1768c',2,NULL,NULL,NULL);
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
INSERT INTO "relet_finished" VALUES('01a1f0ed-6fd9-7fbd-a9da-b3cba9f8e576','succeeded','default','double',0,NULL,NULL,'{"number":1}','2',NULL,1,4,0,1,'vm:18391:6df27ba3','b526bd1c-73d4-4fc4-b4f4-5e84caa12301','01a1f0ed-6fd9-7fbd-a9da-b3cba9f8e576',0,0,NULL,1795043454.938,1795043454.938,1795043455.511,NULL,NULL,1795043455.523,NULL);
INSERT INTO "relet_finished" VALUES('01a1f0ed-6fdb-7b65-ae5a-f9bf9caad61f','succeeded','default','first',0,NULL,NULL,'{"number":2}',NULL,NULL,1,4,0,1,'vm:18391:6df27ba3','b526bd1c-73d4-4fc4-b4f4-5e84caa12301','01a1f0ed-6fdb-7b65-ae5a-f9bf9caad61f',0,1,NULL,1795043454.939,1795043454.939,1795043455.511,NULL,NULL,1795043455.527,NULL);
INSERT INTO "relet_finished" VALUES('01a1f0ed-7221-71be-b6c0-41f88750f97f','succeeded','default','double',0,NULL,NULL,'{"number":2}','4',NULL,1,4,0,1,'vm:18391:6df27ba3','bc82f167-a6d2-454f-a58d-acb5dafc5dd0','01a1f0ed-6fdb-7b65-ae5a-f9bf9caad61f',1,0,NULL,1795043455.528,1795043455.528,1795043455.537,NULL,NULL,1795043455.551,NULL);
INSERT INTO "relet_finished" VALUES('01a1f0ed-7256-70c5-8841-23b417fcb61a','cancelled','default','double',0,NULL,NULL,'{"number":3}',NULL,NULL,0,4,0,0,NULL,NULL,'01a1f0ed-7256-70c5-8841-23b417fcb61a',0,0,NULL,1795043455.575,1795047055.575,NULL,NULL,NULL,1795043455.578,NULL);
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
INSERT INTO "relet_jobs" VALUES('01a1f0ed-6fdc-7af9-b8a7-7f19a5a7c374',6,'failed',NULL,'default','refuse',0,0,'blocked',NULL,1,'{"reason":"card declined"}',1.79504345555417108536e+09,2,2,0,0,2,'{"backoff":[0.01,0.01,2.0,true]}',NULL,NULL,'40226616-4755-4b44-9c2d-b5aa29457d81',NULL,NULL,NULL,0,NULL,NULL,'ValueError: card declined

Traceback (most recent call last):
  File "/srv/tests/stored/shop.py", line 28, in refuse
    raise ValueError(reason)
ValueError: card declined
','01a1f0ed-6fdc-7af9-b8a7-7f19a5a7c374',0,0,0,NULL,NULL,1,NULL,0,1795043454.941,1795043455.564,NULL);
INSERT INTO "relet_jobs" VALUES('01a1f0ed-7260-71fc-8448-8c8f663b571f',8,'pending','time','default','approve',0,0,NULL,NULL,0,'{"amount":7}',2111267455.94,0,4,0,0,1,NULL,NULL,NULL,'fb285a88-e048-4aa2-80a1-eb0194e6c7ad',NULL,NULL,NULL,0,NULL,NULL,NULL,'01a1f0ed-7260-71fc-8448-8c8f663b571f',0,0,0,'answer',NULL,0,NULL,0,1795043455.584,NULL,NULL);
INSERT INTO "relet_jobs" VALUES('01a1f0ed-73d5-742f-9de2-c635ad5b3afc',9,'running',NULL,'abandoned','die',0,0,NULL,NULL,0,'{"folder":"/tmp/tmpise4h4fn"}',1795043455.957,1,4,0,0,1,NULL,NULL,'vm:18435:53a93bcc','0627d2f1-2e15-412d-a5ef-8f1e1ac63300',1795043461.267,NULL,1795043456.267,0,NULL,NULL,NULL,'01a1f0ed-73d5-742f-9de2-c635ad5b3afc',0,0,0,NULL,NULL,0,NULL,0,1795043455.957,NULL,NULL);
INSERT INTO "relet_jobs" VALUES('01a1f0ed-7519-70e9-8007-5b33d5bf3097',10,'queued',NULL,'waiting','double',0,0,NULL,NULL,0,'{"number":0}',1795043456.281,0,4,0,0,0,NULL,NULL,NULL,NULL,NULL,NULL,NULL,0,NULL,NULL,NULL,'01a1f0ed-7519-70e9-8007-5b33d5bf3097',0,0,0,NULL,NULL,0,NULL,0,1795043456.281,NULL,NULL);
INSERT INTO "relet_jobs" VALUES('01a1f0ed-751b-76d1-971b-ce313e3639c9',11,'queued',NULL,'waiting','double',1,-1,NULL,NULL,0,'{"number":1}',1795043456.283,0,4,0,0,0,NULL,NULL,NULL,NULL,NULL,NULL,NULL,0,NULL,NULL,NULL,'01a1f0ed-751b-76d1-971b-ce313e3639c9',0,0,0,NULL,NULL,0,NULL,0,1795043456.283,NULL,NULL);
INSERT INTO "relet_jobs" VALUES('01a1f0ed-751d-7f01-9d93-d1210db1768c',12,'queued',NULL,'waiting','double',2,-2,NULL,NULL,0,'{"number":2}',1795043456.285,0,4,0,0,0,NULL,NULL,NULL,NULL,NULL,NULL,NULL,0,NULL,NULL,NULL,'01a1f0ed-751d-7f01-9d93-d1210db1768c',0,0,0,NULL,NULL,0,NULL,0,1795043456.285,NULL,NULL);
INSERT INTO "relet_jobs" VALUES('01a1f0ed-751f-7318-b5ba-43ade0519898',13,'pending','time','waiting','double',0,0,NULL,NULL,0,'{"number":10}',1795043457.287,0,4,0,0,0,NULL,NULL,NULL,NULL,NULL,NULL,NULL,0,NULL,NULL,NULL,'01a1f0ed-751f-7318-b5ba-43ade0519898',0,0,0,NULL,NULL,0,NULL,0,1795043456.287,NULL,NULL);
INSERT INTO "relet_jobs" VALUES('01a1f0ed-7521-7b86-a593-25aab243360b',14,'pending','target','waiting','double',0,0,'blocked',NULL,0,'{"number":11}',1795043456.289,0,4,0,0,0,NULL,NULL,NULL,NULL,NULL,NULL,NULL,0,NULL,NULL,NULL,'01a1f0ed-7521-7b86-a593-25aab243360b',0,0,0,NULL,NULL,0,NULL,0,1795043456.289,NULL,NULL);
INSERT INTO "relet_jobs" VALUES('01a1f0ed-7523-7c0c-8f21-2f3c8cdbb3bb',15,'queued',NULL,'waiting','double',0,0,NULL,NULL,0,'{"number":12}',1795043456.292,0,4,0,0,0,NULL,NULL,NULL,NULL,NULL,NULL,NULL,0,NULL,NULL,NULL,'01a1f0ed-7523-7c0c-8f21-2f3c8cdbb3bb',0,0,0,NULL,NULL,0,'once',0,1795043456.292,NULL,NULL);
INSERT INTO "relet_jobs" VALUES('01a1f0ed-7525-7446-9e69-685825d0ec37',16,'queued',NULL,'waiting','double',0,0,NULL,NULL,0,'{"number":13}',1795043456.294,0,4,0,0,0,NULL,NULL,NULL,NULL,NULL,NULL,NULL,0,NULL,NULL,NULL,'01a1f0ed-7525-7446-9e69-685825d0ec37',0,0,0,NULL,NULL,0,'window',1,1795043456.294,NULL,NULL);
INSERT INTO "relet_jobs" VALUES('01a1f0ed-752b-7f55-9e45-0921f581c0c5',17,'pending','jobs','waiting','collect',0,0,NULL,NULL,0,'{}',1795043456.3,0,4,0,0,0,NULL,NULL,NULL,NULL,NULL,NULL,NULL,0,NULL,NULL,NULL,'01a1f0ed-752b-7f55-9e45-0921f581c0c5',0,3,3,NULL,NULL,0,NULL,0,1795043456.3,NULL,NULL);
INSERT INTO "relet_jobs" VALUES('01a1f0ed-752e-7166-82be-1bbe7ea3d830',18,'paused',NULL,'waiting','double',0,0,NULL,NULL,0,'{"number":14}',1795043456.303,0,4,0,0,0,NULL,NULL,NULL,NULL,NULL,NULL,NULL,0,NULL,NULL,NULL,'01a1f0ed-752e-7166-82be-1bbe7ea3d830',0,0,0,NULL,NULL,0,NULL,0,1795043456.303,1795043456.328,NULL);
INSERT INTO "relet_jobs" VALUES('01a1f0ed-7552-7bbb-9df8-480afa2da1ef',19,'queued',NULL,'paused','double',0,0,NULL,NULL,0,'{"number":15}',1795043456.338,0,4,0,0,0,NULL,NULL,NULL,NULL,NULL,NULL,NULL,0,NULL,NULL,NULL,'01a1f0ed-7552-7bbb-9df8-480afa2da1ef',0,0,0,NULL,NULL,0,NULL,0,1795043456.338,NULL,NULL);
INSERT INTO "relet_jobs" VALUES('01a1f0ed-7553-7d9b-8291-92676d5e6624',20,'queued',NULL,'limited','double',0,0,NULL,'a',0,'{"number":0}',1795043456.339,0,4,0,0,0,NULL,NULL,NULL,NULL,NULL,NULL,NULL,0,NULL,NULL,NULL,'01a1f0ed-7553-7d9b-8291-92676d5e6624',0,0,0,NULL,NULL,0,NULL,0,1795043456.339,NULL,NULL);
INSERT INTO "relet_jobs" VALUES('01a1f0ed-7554-754e-93b5-c81a450456ce',21,'queued',NULL,'limited','double',0,0,NULL,'a',0,'{"number":1}',1795043456.34,0,4,0,0,0,NULL,NULL,NULL,NULL,NULL,NULL,NULL,0,NULL,NULL,NULL,'01a1f0ed-7554-754e-93b5-c81a450456ce',0,0,0,NULL,NULL,0,NULL,0,1795043456.34,NULL,NULL);
INSERT INTO "relet_jobs" VALUES('01a1f0ed-7555-751a-80e9-c2f50c8940fd',22,'queued',NULL,'limited','double',0,0,NULL,'b',0,'{"number":2}',1795043456.341,0,4,0,0,0,NULL,NULL,NULL,NULL,NULL,NULL,NULL,0,NULL,NULL,NULL,'01a1f0ed-7555-751a-80e9-c2f50c8940fd',0,0,0,NULL,NULL,0,NULL,0,1795043456.341,NULL,NULL);
CREATE TABLE relet_keys (
    key    text primary key not null,
    job    text not null,
    until  real
);
INSERT INTO "relet_keys" VALUES('once','01a1f0ed-7523-7c0c-8f21-2f3c8cdbb3bb',NULL);
INSERT INTO "relet_keys" VALUES('window','01a1f0ed-7525-7446-9e69-685825d0ec37',1795043516.294);
CREATE TABLE relet_migrations (version integer primary key, applied_at real not null, oldest integer, release text);
INSERT INTO "relet_migrations" VALUES(1,1.79504345490798807149e+09,1,'0.1.0');
INSERT INTO "relet_migrations" VALUES(2,1.79504345491100549695e+09,1,'0.1.0');
INSERT INTO "relet_migrations" VALUES(3,1.79504345491201138494e+09,1,'0.1.0');
INSERT INTO "relet_migrations" VALUES(4,1.79504345491398286816e+09,1,'0.1.0');
INSERT INTO "relet_migrations" VALUES(5,1.7950434549159944058e+09,1,'0.1.0');
INSERT INTO "relet_migrations" VALUES(6,1.79504345491700029375e+09,1,'0.1.0');
INSERT INTO "relet_migrations" VALUES(7,1.79504345491700029375e+09,1,'0.1.0');
CREATE TABLE relet_nudges (
    id      integer primary key autoincrement,
    kind    text not null check (kind in ('target', 'job', 'chain', 'signal')),
    key     text not null,
    beyond  text
);
INSERT INTO "relet_nudges" VALUES(6,'target','blocked',NULL);
INSERT INTO "relet_nudges" VALUES(7,'job','01a1f0ed-752b-7f55-9e45-0921f581c0c5',NULL);
CREATE TABLE relet_operations (
    id       text primary key,
    verb     text not null,
    subject  text not null,
    request  text,  
    outcome  text,  
    at       real not null
) without rowid;
INSERT INTO "relet_operations" VALUES('01a1f0ed-6fcb-79a1-ae7d-e5bc12e5c5b2','limit_queue','limited',NULL,'{}',1795043454.933);
INSERT INTO "relet_operations" VALUES('01a1f0ed-7259-7d6f-94ee-76198a00eb67','cancel','01a1f0ed-7256-70c5-8841-23b417fcb61a',NULL,'{"jobs":[{"id":"01a1f0ed-7256-70c5-8841-23b417fcb61a","task":"double","queue":"default","state":"cancelled","priority":0,"payload":"null","attempt":0,"max_attempts":4,"losses":0,"version":0,"chain":"01a1f0ed-7256-70c5-8841-23b417fcb61a","position":0,"created_at":"2026-11-18T23:10:55.575000Z","run_at":"2026-11-19T00:10:55.575000Z","started_at":null,"finished_at":"2026-11-18T23:10:55.578000Z","wait":null,"target":null,"holds":false,"unique":null,"worker":null,"expires_at":null,"request":null,"result":null,"error":null,"continued":false,"progress":null,"group":null,"awaits":null,"context":null,"renewed_at":null,"start_by":null,"tags":[],"rerun_of":null,"error_type":null,"existing":false}]}',1795043455.577);
INSERT INTO "relet_operations" VALUES('01a1f0ed-7546-7d30-9b6a-fe2cb24bbbc0','pause','01a1f0ed-752e-7166-82be-1bbe7ea3d830',NULL,'{"jobs":[{"id":"01a1f0ed-752e-7166-82be-1bbe7ea3d830","task":"double","queue":"waiting","state":"paused","priority":0,"payload":"null","attempt":0,"max_attempts":4,"losses":0,"version":0,"chain":"01a1f0ed-752e-7166-82be-1bbe7ea3d830","position":0,"created_at":"2026-11-18T23:10:56.303000Z","run_at":"2026-11-18T23:10:56.303000Z","started_at":null,"finished_at":"2026-11-18T23:10:56.328000Z","wait":null,"target":null,"holds":false,"unique":null,"worker":null,"expires_at":null,"request":null,"result":null,"error":null,"continued":false,"progress":null,"group":null,"awaits":null,"context":null,"renewed_at":null,"start_by":null,"tags":[],"rerun_of":null,"error_type":null,"existing":false}]}',1795043456.326);
INSERT INTO "relet_operations" VALUES('01a1f0ed-7557-7610-a2d9-8b556d359119','pause_queue','paused',NULL,'{}',1795043456.343);
CREATE TABLE relet_pulse (
    single       integer primary key check (single = 1),
    touched_at   real not null default 0,
    grace_until  real not null default 0
, tables text, period_from real not null default 0, uptime real not null default 0, reap_before real not null default 0);
INSERT INTO "relet_pulse" VALUES(1,1795043456.245,0.0,NULL,0.0,7.80769768911341088823e-01,0.0);
CREATE TABLE relet_quarantine (
    single  integer primary key check (single = 1),
    worker  text,
    until   real not null default 0
);
INSERT INTO "relet_quarantine" VALUES(1,NULL,1795043459.252);
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
INSERT INTO "relet_queue_samples" VALUES('default',1,2,0,0,0,0.564000129699707,1795043455.507);
INSERT INTO "relet_queue_samples" VALUES('limited',0,0,0,0,0,NULL,1795043455.507);
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
INSERT INTO "relet_schedules" VALUES('report','report','{"draft":{"id":"01a1f0ed-71ae-799f-b76d-b0815bcd87eb","task":"report","payload":"{}","queue":"default","priority":0,"run_at":null,"delay":null,"target":null,"group":null,"unique":null,"unique_for":null,"replace":false,"depends_on":[],"policy":{"max_attempts":4,"backoff":{"base":0.5,"max":30.0,"factor":2.0,"jitter":true},"lease":null,"timeout":null,"on_expired":"retry","on_failure":"hold","on_dependency_failure":"hold","follow_up":null},"context":null,"fresh":true,"start_by":null,"tags":[],"rerun_of":null},"cron":"0 3 * * *"}','{"draft":{"id":"","task":"report","payload":"{}","queue":"default","priority":0,"run_at":null,"delay":null,"target":null,"group":null,"unique":null,"unique_for":null,"replace":false,"depends_on":[],"policy":{"max_attempts":4,"backoff":{"base":0.5,"max":30.0,"factor":2.0,"jitter":true},"lease":null,"timeout":null,"on_expired":"retry","on_failure":"hold","on_dependency_failure":"hold","follow_up":null},"context":null,"fresh":true,"start_by":null,"tags":[],"rerun_of":null},"cron":"0 3 * * *"}',0,1795057200.0,1795043455.481,1795043455.481);
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
INSERT INTO "relet_stats" VALUES(60,1795043400.0,'','sampled',0,1,1.0);
INSERT INTO "relet_stats" VALUES(60,1795043400.0,'default','gauge.pending',0,1,1.0);
INSERT INTO "relet_stats" VALUES(60,1795043400.0,'default','gauge.queued',0,1,2.0);
INSERT INTO "relet_stats" VALUES(60,1795043400.0,'default','gauge.running',0,1,0.0);
INSERT INTO "relet_stats" VALUES(60,1795043400.0,'default','gauge.paused_jobs',0,1,0.0);
INSERT INTO "relet_stats" VALUES(60,1795043400.0,'default','gauge.failed',0,1,0.0);
INSERT INTO "relet_stats" VALUES(60,1795043400.0,'default','gauge.oldest',0,1,0.564000129699707);
INSERT INTO "relet_stats" VALUES(60,1795043400.0,'limited','gauge.pending',0,1,0.0);
INSERT INTO "relet_stats" VALUES(60,1795043400.0,'limited','gauge.queued',0,1,0.0);
INSERT INTO "relet_stats" VALUES(60,1795043400.0,'limited','gauge.running',0,1,0.0);
INSERT INTO "relet_stats" VALUES(60,1795043400.0,'limited','gauge.paused_jobs',0,1,0.0);
INSERT INTO "relet_stats" VALUES(60,1795043400.0,'limited','gauge.failed',0,1,0.0);
INSERT INTO "relet_stats" VALUES(60,1795043400.0,'limited','gauge.oldest',0,1,0.0);
INSERT INTO "relet_stats" VALUES(-60,1795043400.0,'*','gauge.pending',0,1,1.0);
INSERT INTO "relet_stats" VALUES(-60,1795043400.0,'*','gauge.queued',0,1,2.0);
INSERT INTO "relet_stats" VALUES(-60,1795043400.0,'*','gauge.running',0,1,0.0);
INSERT INTO "relet_stats" VALUES(-60,1795043400.0,'*','gauge.paused_jobs',0,1,0.0);
INSERT INTO "relet_stats" VALUES(-60,1795043400.0,'*','gauge.failed',0,1,0.0);
INSERT INTO "relet_stats" VALUES(-60,1795043400.0,'*','gauge.oldest',0,1,0.564000129699707);
CREATE TABLE relet_steps (
    job      text not null,
    kind     text not null check (kind in ('step', 'sleep', 'wait', 'missed')),
    name     text not null,
    result   text,
    until    real,
    done_at  real not null, started_at real, input text,
    primary key (job, kind, name)
);
INSERT INTO "relet_steps" VALUES('01a1f0ed-7260-71fc-8448-8c8f663b571f','step','charge','"charged 7"',NULL,1795043455.931,1.79504345593072867394e+09,'{"amount":7}');
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
INSERT INTO "relet_workers" VALUES('vm:18391:6df27ba3','vm',18391,'{"name":"vm:18391:6df27ba3","host":"vm","pid":18391,"queues":["default"],"slots":10,"tasks":["approve","collect","die","double","first","refuse","report"],"lease":5.0,"version":"0.1.0"}',0,0,'920729a0-5006-4587-befc-3afc99fd95e2',1795043455.479,1795043455.479);
INSERT INTO "relet_workers" VALUES('vm:18415:6589292b','vm',18415,'{"name":"vm:18415:6589292b","host":"vm","pid":18415,"queues":["default"],"slots":10,"tasks":["approve","collect","die","double","first","refuse","report"],"lease":5.0,"version":"0.1.0"}',0,0,'266b7cf8-de41-4481-bb6c-095231143e00',1795043455.885,1795043455.885);
INSERT INTO "relet_workers" VALUES('vm:18435:53a93bcc','vm',18435,'{"name":"vm:18435:53a93bcc","host":"vm","pid":18435,"queues":["abandoned"],"slots":10,"tasks":["approve","collect","die","double","first","refuse","report"],"lease":5.0,"version":"0.1.0"}',0,0,'c36c23d5-986f-4dab-8a8d-e6a31b1f248d',1795043456.252,1795043456.252);
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
