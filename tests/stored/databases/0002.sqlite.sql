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
    error       text,
    primary key (job, version)
);
INSERT INTO "relet_attempts" VALUES('01a1ec79-104c-79ff-86d6-1d2baa16e5e8',1,1,'vm:11383:b29bbb3c',1794968719.904,1794968719.954,NULL,1794968749.904,'retried','ValueError: card declined

Traceback (most recent call last):
  File "/srv/tests/stored/shop.py", line 28, in refuse
    raise ValueError(reason)
ValueError: card declined
');
INSERT INTO "relet_attempts" VALUES('01a1ec79-104c-79ff-86d6-1d2baa16e5e8',2,2,'vm:11383:b29bbb3c',1794968719.975,1794968719.977,NULL,1794968749.975,'failed','ValueError: card declined

Traceback (most recent call last):
  File "/srv/tests/stored/shop.py", line 28, in refuse
    raise ValueError(reason)
ValueError: card declined
');
INSERT INTO "relet_attempts" VALUES('01a1ec79-1298-7274-926d-1c463f5df75d',1,1,'vm:11404:0258835a',1794968720.455,1794968720.51,NULL,1794968750.455,'snoozed',NULL);
CREATE TABLE relet_audit (
    seq      integer primary key autoincrement,
    id       text not null unique,  
    at       real not null,
    who      text not null,
    what     text not null,
    subject  text not null,
    detail   text
);
INSERT INTO "relet_audit" VALUES(1,'01a1ec79-128c-73e4-b5be-8c18b438bc94',1794968720.015,'ada','cancel','01a1ec79-1287-7447-bfe9-184dcccb64fe',NULL);
INSERT INTO "relet_audit" VALUES(2,'01a1ec79-170c-7826-bdc9-d1e10f87c4c9',1794968721.164,'ada','pause_queue','paused',NULL);
CREATE TABLE relet_dependencies (
    job         text not null,
    depends_on  text not null,  
    position    integer not null,
    state       text check (state in ('succeeded', 'failed', 'cancelled', 'deleted')),
    result      text,
    task        text,  
    primary key (job, depends_on)
);
INSERT INTO "relet_dependencies" VALUES('01a1ec79-16e0-7473-8080-de78d8a58016','01a1ec79-16bb-731e-b998-98b9b0ad4d30',0,NULL,NULL,NULL);
INSERT INTO "relet_dependencies" VALUES('01a1ec79-16e0-7473-8080-de78d8a58016','01a1ec79-16c4-7be1-8019-0155e5ffa1fd',1,NULL,NULL,NULL);
INSERT INTO "relet_dependencies" VALUES('01a1ec79-16e0-7473-8080-de78d8a58016','01a1ec79-16c8-7b02-ae2c-9bc0c191ca21',2,NULL,NULL,NULL);
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
);
INSERT INTO "relet_finished" VALUES('01a1ec79-1041-786a-8456-815f51fb9357','succeeded','default','double',0,NULL,NULL,'{"number":1}','2',NULL,1,4,0,1,'vm:11383:b29bbb3c','164efa82-6fe8-472e-98c4-249dd6ec0239','01a1ec79-1041-786a-8456-815f51fb9357',0,0,NULL,1794968719.426,1794968719.426,1794968719.904,NULL,NULL,1794968719.923);
INSERT INTO "relet_finished" VALUES('01a1ec79-1047-700e-88d0-90652e43a219','succeeded','default','first',0,NULL,NULL,'{"number":2}',NULL,NULL,1,4,0,1,'vm:11383:b29bbb3c','164efa82-6fe8-472e-98c4-249dd6ec0239','01a1ec79-1047-700e-88d0-90652e43a219',0,1,NULL,1794968719.432,1794968719.432,1794968719.904,NULL,NULL,1794968719.937);
INSERT INTO "relet_finished" VALUES('01a1ec79-122c-72bf-a1f9-b12a022a127e','succeeded','default','double',0,NULL,NULL,'{"number":2}','4',NULL,1,4,0,1,'vm:11383:b29bbb3c','0e53b46f-be05-4f4e-b8d6-5e7c0e9e7937','01a1ec79-1047-700e-88d0-90652e43a219',1,0,NULL,1794968719.939,1794968719.939,1794968719.945,NULL,NULL,1794968719.968);
INSERT INTO "relet_finished" VALUES('01a1ec79-1287-7447-bfe9-184dcccb64fe','cancelled','default','double',0,NULL,NULL,'{"number":3}',NULL,NULL,0,4,0,0,NULL,NULL,'01a1ec79-1287-7447-bfe9-184dcccb64fe',0,0,NULL,1794968720.009,1794972320.009,NULL,NULL,NULL,1794968720.013);
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
INSERT INTO "relet_jobs" VALUES('01a1ec79-104c-79ff-86d6-1d2baa16e5e8',6,'failed',NULL,'default','refuse',0,0,'blocked',NULL,1,'{"reason":"card declined"}',1.79496871996175098419e+09,2,2,0,0,2,'{"backoff":[0.01,0.01,2.0,true]}',NULL,NULL,'b2a191b6-41de-4409-8327-e508f2c2938a',NULL,NULL,NULL,0,NULL,NULL,'ValueError: card declined

Traceback (most recent call last):
  File "/srv/tests/stored/shop.py", line 28, in refuse
    raise ValueError(reason)
ValueError: card declined
','01a1ec79-104c-79ff-86d6-1d2baa16e5e8',0,0,0,NULL,NULL,1,NULL,0,1794968719.438,1794968719.978,NULL);
INSERT INTO "relet_jobs" VALUES('01a1ec79-1298-7274-926d-1c463f5df75d',8,'pending','time','default','approve',0,0,NULL,NULL,0,'{"amount":7}',2111192720.511,0,4,0,0,1,NULL,NULL,NULL,'fc3c91a2-aee2-459b-99d9-fbb350fa5976',NULL,NULL,NULL,0,NULL,NULL,NULL,'01a1ec79-1298-7274-926d-1c463f5df75d',0,0,0,'answer',NULL,0,NULL,0,1794968720.025,NULL,NULL);
INSERT INTO "relet_jobs" VALUES('01a1ec79-148f-7a4f-b525-463e91bc8341',9,'running',NULL,'abandoned','die',0,0,NULL,NULL,0,'{"folder":"/tmp/tmp5lbc9r4o"}',1794968720.528,1,4,0,0,1,NULL,NULL,'vm:11417:f90871cf','eb2a31aa-765d-4bf8-b24d-6844d9b18e13',1794968751.066,NULL,1794968721.066,0,NULL,NULL,NULL,'01a1ec79-148f-7a4f-b525-463e91bc8341',0,0,0,NULL,NULL,0,NULL,0,1794968720.528,NULL,NULL);
INSERT INTO "relet_jobs" VALUES('01a1ec79-16bb-731e-b998-98b9b0ad4d30',10,'queued',NULL,'waiting','double',0,0,NULL,NULL,0,'{"number":0}',1794968721.083,0,4,0,0,0,NULL,NULL,NULL,NULL,NULL,NULL,NULL,0,NULL,NULL,NULL,'01a1ec79-16bb-731e-b998-98b9b0ad4d30',0,0,0,NULL,NULL,0,NULL,0,1794968721.083,NULL,NULL);
INSERT INTO "relet_jobs" VALUES('01a1ec79-16c4-7be1-8019-0155e5ffa1fd',11,'queued',NULL,'waiting','double',1,-1,NULL,NULL,0,'{"number":1}',1794968721.092,0,4,0,0,0,NULL,NULL,NULL,NULL,NULL,NULL,NULL,0,NULL,NULL,NULL,'01a1ec79-16c4-7be1-8019-0155e5ffa1fd',0,0,0,NULL,NULL,0,NULL,0,1794968721.092,NULL,NULL);
INSERT INTO "relet_jobs" VALUES('01a1ec79-16c8-7b02-ae2c-9bc0c191ca21',12,'queued',NULL,'waiting','double',2,-2,NULL,NULL,0,'{"number":2}',1794968721.096,0,4,0,0,0,NULL,NULL,NULL,NULL,NULL,NULL,NULL,0,NULL,NULL,NULL,'01a1ec79-16c8-7b02-ae2c-9bc0c191ca21',0,0,0,NULL,NULL,0,NULL,0,1794968721.096,NULL,NULL);
INSERT INTO "relet_jobs" VALUES('01a1ec79-16cc-7fa0-aa11-3f10686ff9e8',13,'pending','time','waiting','double',0,0,NULL,NULL,0,'{"number":10}',1794968722.1,0,4,0,0,0,NULL,NULL,NULL,NULL,NULL,NULL,NULL,0,NULL,NULL,NULL,'01a1ec79-16cc-7fa0-aa11-3f10686ff9e8',0,0,0,NULL,NULL,0,NULL,0,1794968721.1,NULL,NULL);
INSERT INTO "relet_jobs" VALUES('01a1ec79-16ce-7213-83a1-08a671671c0f',14,'pending','target','waiting','double',0,0,'blocked',NULL,0,'{"number":11}',1794968721.103,0,4,0,0,0,NULL,NULL,NULL,NULL,NULL,NULL,NULL,0,NULL,NULL,NULL,'01a1ec79-16ce-7213-83a1-08a671671c0f',0,0,0,NULL,NULL,0,NULL,0,1794968721.103,NULL,NULL);
INSERT INTO "relet_jobs" VALUES('01a1ec79-16d3-79af-8c81-1a7cd91b9169',15,'queued',NULL,'waiting','double',0,0,NULL,NULL,0,'{"number":12}',1794968721.108,0,4,0,0,0,NULL,NULL,NULL,NULL,NULL,NULL,NULL,0,NULL,NULL,NULL,'01a1ec79-16d3-79af-8c81-1a7cd91b9169',0,0,0,NULL,NULL,0,'once',0,1794968721.108,NULL,NULL);
INSERT INTO "relet_jobs" VALUES('01a1ec79-16d8-7f73-8edf-ca6ca4169e09',16,'queued',NULL,'waiting','double',0,0,NULL,NULL,0,'{"number":13}',1794968721.113,0,4,0,0,0,NULL,NULL,NULL,NULL,NULL,NULL,NULL,0,NULL,NULL,NULL,'01a1ec79-16d8-7f73-8edf-ca6ca4169e09',0,0,0,NULL,NULL,0,'window',1,1794968721.113,NULL,NULL);
INSERT INTO "relet_jobs" VALUES('01a1ec79-16e0-7473-8080-de78d8a58016',17,'pending','jobs','waiting','collect',0,0,NULL,NULL,0,'{}',1794968721.121,0,4,0,0,0,NULL,NULL,NULL,NULL,NULL,NULL,NULL,0,NULL,NULL,NULL,'01a1ec79-16e0-7473-8080-de78d8a58016',0,3,3,NULL,NULL,0,NULL,0,1794968721.121,NULL,NULL);
INSERT INTO "relet_jobs" VALUES('01a1ec79-16e8-7dbc-a970-c2d75ade4d1c',18,'paused',NULL,'waiting','double',0,0,NULL,NULL,0,'{"number":14}',1794968721.128,0,4,0,0,0,NULL,NULL,NULL,NULL,NULL,NULL,NULL,0,NULL,NULL,NULL,'01a1ec79-16e8-7dbc-a970-c2d75ade4d1c',0,0,0,NULL,NULL,0,NULL,0,1794968721.128,1794968721.134,NULL);
INSERT INTO "relet_jobs" VALUES('01a1ec79-16f4-7a47-8671-fd3d0e28a7db',19,'queued',NULL,'paused','double',0,0,NULL,NULL,0,'{"number":15}',1794968721.14,0,4,0,0,0,NULL,NULL,NULL,NULL,NULL,NULL,NULL,0,NULL,NULL,NULL,'01a1ec79-16f4-7a47-8671-fd3d0e28a7db',0,0,0,NULL,NULL,0,NULL,0,1794968721.14,NULL,NULL);
INSERT INTO "relet_jobs" VALUES('01a1ec79-16f8-76a1-95ba-c106d47d80ad',20,'queued',NULL,'limited','double',0,0,NULL,'a',0,'{"number":0}',1794968721.144,0,4,0,0,0,NULL,NULL,NULL,NULL,NULL,NULL,NULL,0,NULL,NULL,NULL,'01a1ec79-16f8-76a1-95ba-c106d47d80ad',0,0,0,NULL,NULL,0,NULL,0,1794968721.144,NULL,NULL);
INSERT INTO "relet_jobs" VALUES('01a1ec79-16fd-716c-8497-0323da45ecbb',21,'queued',NULL,'limited','double',0,0,NULL,'a',0,'{"number":1}',1794968721.15,0,4,0,0,0,NULL,NULL,NULL,NULL,NULL,NULL,NULL,0,NULL,NULL,NULL,'01a1ec79-16fd-716c-8497-0323da45ecbb',0,0,0,NULL,NULL,0,NULL,0,1794968721.15,NULL,NULL);
INSERT INTO "relet_jobs" VALUES('01a1ec79-1701-7ce8-a357-772f84507df0',22,'queued',NULL,'limited','double',0,0,NULL,'b',0,'{"number":2}',1794968721.153,0,4,0,0,0,NULL,NULL,NULL,NULL,NULL,NULL,NULL,0,NULL,NULL,NULL,'01a1ec79-1701-7ce8-a357-772f84507df0',0,0,0,NULL,NULL,0,NULL,0,1794968721.153,NULL,NULL);
CREATE TABLE relet_keys (
    key    text primary key not null,
    job    text not null,
    until  real
);
INSERT INTO "relet_keys" VALUES('once','01a1ec79-16d3-79af-8c81-1a7cd91b9169',NULL);
INSERT INTO "relet_keys" VALUES('window','01a1ec79-16d8-7f73-8edf-ca6ca4169e09',1794968781.113);
CREATE TABLE relet_migrations (version integer primary key, applied_at real not null, oldest integer, release text);
INSERT INTO "relet_migrations" VALUES(1,1.79496871937901830672e+09,1,'0.1.0');
INSERT INTO "relet_migrations" VALUES(2,1.79496871938300132749e+09,1,'0.1.0');
CREATE TABLE relet_nudges (
    id      integer primary key autoincrement,
    kind    text not null check (kind in ('target', 'job', 'chain', 'signal')),
    key     text not null,
    beyond  text
);
INSERT INTO "relet_nudges" VALUES(6,'target','blocked',NULL);
INSERT INTO "relet_nudges" VALUES(7,'job','01a1ec79-16e0-7473-8080-de78d8a58016',NULL);
CREATE TABLE relet_operations (
    id       text primary key,
    verb     text not null,
    subject  text not null,
    request  text,  
    outcome  text,  
    at       real not null
) without rowid;
INSERT INTO "relet_operations" VALUES('01a1ec79-1024-7398-ac40-966033754c88','limit_queue','limited',NULL,'{}',1794968719.409);
INSERT INTO "relet_operations" VALUES('01a1ec79-128c-75d7-8544-2886fef61071','cancel','01a1ec79-1287-7447-bfe9-184dcccb64fe',NULL,'{"jobs":[{"id":"01a1ec79-1287-7447-bfe9-184dcccb64fe","task":"double","queue":"default","state":"cancelled","priority":0,"payload":"null","attempt":0,"max_attempts":4,"losses":0,"version":0,"chain":"01a1ec79-1287-7447-bfe9-184dcccb64fe","position":0,"created_at":"2026-11-18T02:25:20.009000Z","run_at":"2026-11-18T03:25:20.009000Z","started_at":null,"finished_at":"2026-11-18T02:25:20.013000Z","wait":null,"target":null,"holds":false,"unique":null,"worker":null,"expires_at":null,"request":null,"result":null,"error":null,"continued":false,"progress":null,"group":null,"awaits":null,"context":null,"renewed_at":null,"existing":false}]}',1794968720.012);
INSERT INTO "relet_operations" VALUES('01a1ec79-16ec-7ce6-a8c0-817651af906e','pause','01a1ec79-16e8-7dbc-a970-c2d75ade4d1c',NULL,'{"jobs":[{"id":"01a1ec79-16e8-7dbc-a970-c2d75ade4d1c","task":"double","queue":"waiting","state":"paused","priority":0,"payload":"null","attempt":0,"max_attempts":4,"losses":0,"version":0,"chain":"01a1ec79-16e8-7dbc-a970-c2d75ade4d1c","position":0,"created_at":"2026-11-18T02:25:21.128000Z","run_at":"2026-11-18T02:25:21.128000Z","started_at":null,"finished_at":"2026-11-18T02:25:21.134000Z","wait":null,"target":null,"holds":false,"unique":null,"worker":null,"expires_at":null,"request":null,"result":null,"error":null,"continued":false,"progress":null,"group":null,"awaits":null,"context":null,"renewed_at":null,"existing":false}]}',1794968721.132);
INSERT INTO "relet_operations" VALUES('01a1ec79-170c-7a3c-82b8-b3945ff8dc23','pause_queue','paused',NULL,'{}',1794968721.164);
CREATE TABLE relet_pulse (
    single       integer primary key check (single = 1),
    touched_at   real not null default 0,
    grace_until  real not null default 0
);
INSERT INTO "relet_pulse" VALUES(1,1794968721.039,1794968729.844);
CREATE TABLE relet_quarantine (
    single  integer primary key check (single = 1),
    worker  text,
    until   real not null default 0
);
INSERT INTO "relet_quarantine" VALUES(1,NULL,1794968724.045);
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
INSERT INTO "relet_queue_samples" VALUES('default',1,2,0,0,0,4.41999912261962890625e-01,1794968719.88);
INSERT INTO "relet_queue_samples" VALUES('limited',0,0,0,0,0,NULL,1794968719.88);
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
INSERT INTO "relet_schedules" VALUES('report','report','{"draft":{"id":"01a1ec79-1163-7c4c-b235-95a4d5e99893","task":"report","payload":"{}","queue":"default","priority":0,"run_at":null,"delay":null,"target":null,"group":null,"unique":null,"unique_for":null,"replace":false,"depends_on":[],"policy":{"max_attempts":4,"backoff":{"base":0.5,"max":30.0,"factor":2.0,"jitter":true},"lease":null,"timeout":null,"on_expired":"retry","on_failure":"hold","on_dependency_failure":"hold"},"context":null,"fresh":true},"cron":"0 3 * * *"}','{"draft":{"id":"","task":"report","payload":"{}","queue":"default","priority":0,"run_at":null,"delay":null,"target":null,"group":null,"unique":null,"unique_for":null,"replace":false,"depends_on":[],"policy":{"max_attempts":4,"backoff":{"base":0.5,"max":30.0,"factor":2.0,"jitter":true},"lease":null,"timeout":null,"on_expired":"retry","on_failure":"hold","on_dependency_failure":"hold"},"context":null,"fresh":true},"cron":"0 3 * * *"}',0,1794970800.0,1794968719.853,1794968719.853);
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
INSERT INTO "relet_stats" VALUES(60,1794968700.0,'','sampled',0,1,1.0);
INSERT INTO "relet_stats" VALUES(60,1794968700.0,'default','gauge.pending',0,1,1.0);
INSERT INTO "relet_stats" VALUES(60,1794968700.0,'default','gauge.queued',0,1,2.0);
INSERT INTO "relet_stats" VALUES(60,1794968700.0,'default','gauge.running',0,1,0.0);
INSERT INTO "relet_stats" VALUES(60,1794968700.0,'default','gauge.paused_jobs',0,1,0.0);
INSERT INTO "relet_stats" VALUES(60,1794968700.0,'default','gauge.failed',0,1,0.0);
INSERT INTO "relet_stats" VALUES(60,1794968700.0,'default','gauge.oldest',0,1,4.41999912261962890625e-01);
INSERT INTO "relet_stats" VALUES(60,1794968700.0,'limited','gauge.pending',0,1,0.0);
INSERT INTO "relet_stats" VALUES(60,1794968700.0,'limited','gauge.queued',0,1,0.0);
INSERT INTO "relet_stats" VALUES(60,1794968700.0,'limited','gauge.running',0,1,0.0);
INSERT INTO "relet_stats" VALUES(60,1794968700.0,'limited','gauge.paused_jobs',0,1,0.0);
INSERT INTO "relet_stats" VALUES(60,1794968700.0,'limited','gauge.failed',0,1,0.0);
INSERT INTO "relet_stats" VALUES(60,1794968700.0,'limited','gauge.oldest',0,1,0.0);
INSERT INTO "relet_stats" VALUES(-60,1794968700.0,'*','gauge.pending',0,1,1.0);
INSERT INTO "relet_stats" VALUES(-60,1794968700.0,'*','gauge.queued',0,1,2.0);
INSERT INTO "relet_stats" VALUES(-60,1794968700.0,'*','gauge.running',0,1,0.0);
INSERT INTO "relet_stats" VALUES(-60,1794968700.0,'*','gauge.paused_jobs',0,1,0.0);
INSERT INTO "relet_stats" VALUES(-60,1794968700.0,'*','gauge.failed',0,1,0.0);
INSERT INTO "relet_stats" VALUES(-60,1794968700.0,'*','gauge.oldest',0,1,4.41999912261962890625e-01);
CREATE TABLE relet_steps (
    job      text not null,
    kind     text not null check (kind in ('step', 'sleep', 'wait', 'missed')),
    name     text not null,
    result   text,
    until    real,
    done_at  real not null,
    primary key (job, kind, name)
);
INSERT INTO "relet_steps" VALUES('01a1ec79-1298-7274-926d-1c463f5df75d','step','charge','"charged 7"',NULL,1794968720.498);
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
INSERT INTO "relet_workers" VALUES('vm:11383:b29bbb3c','vm',11383,'{"name":"vm:11383:b29bbb3c","host":"vm","pid":11383,"queues":["default"],"slots":10,"tasks":["approve","collect","die","double","first","refuse","report"],"lease":30.0,"version":"0.1.0"}',0,0,'484b481c-2ba8-4293-8bf3-c5134b970f06',1794968719.852,1794968719.852);
INSERT INTO "relet_workers" VALUES('vm:11404:0258835a','vm',11404,'{"name":"vm:11404:0258835a","host":"vm","pid":11404,"queues":["default"],"slots":10,"tasks":["approve","collect","die","double","first","refuse","report"],"lease":30.0,"version":"0.1.0"}',0,0,'9317e57b-9404-4168-8665-f107c336a0c9',1794968720.436,1794968720.436);
INSERT INTO "relet_workers" VALUES('vm:11417:f90871cf','vm',11417,'{"name":"vm:11417:f90871cf","host":"vm","pid":11417,"queues":["abandoned"],"slots":10,"tasks":["approve","collect","die","double","first","refuse","report"],"lease":30.0,"version":"0.1.0"}',0,0,'2eaeed54-ac48-48b5-b7bc-ca021fb8978e',1794968721.045,1794968721.045);
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
CREATE INDEX relet_jobs_start_by on relet_jobs (start_by) where start_by is not null and attempt = 0;
CREATE INDEX relet_tags_job on relet_tags (job);
CREATE INDEX relet_reruns_of on relet_reruns (rerun_of);
CREATE VIEW relet_live_jobs as
    select state, wait, losses, token, holds, waits, expires_at, request, awaits, policy, progress, error,
           null as result, 0 as continued, stopped_at as finished_at, id, chain, created_at, run_at, attempt, max_attempts, version, position, priority, queue, task, payload, started_at, renewed_at, worker, target, group_key, unique_key, context, start_by,
           (select json_group_array(t.tag) from relet_tags t where t.job = j.id having count(*) > 0) as tags,
           (select r.rerun_of from relet_reruns r where r.job = j.id) as rerun_of
    from relet_jobs j;
CREATE VIEW relet_over_jobs as
    select state, null as wait, losses, token, 0 as holds, 0 as waits, null as expires_at, null as request,
           null as awaits, null as policy, null as progress, error, result, continued, finished_at, id, chain, created_at, run_at, attempt, max_attempts, version, position, priority, queue, task, payload, started_at, renewed_at, worker, target, group_key, unique_key, context,
           null as start_by,
           (select json_group_array(t.tag) from relet_tags t where t.job = f.id having count(*) > 0) as tags,
           (select r.rerun_of from relet_reruns r where r.job = f.id) as rerun_of
    from relet_finished f;
CREATE VIEW relet_all_jobs as select * from relet_live_jobs union all select * from relet_over_jobs;
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
DELETE FROM "sqlite_sequence";
INSERT INTO "sqlite_sequence" VALUES('relet_nudges',7);
INSERT INTO "sqlite_sequence" VALUES('relet_audit',2);
COMMIT;
