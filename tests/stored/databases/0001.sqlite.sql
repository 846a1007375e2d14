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
INSERT INTO "relet_attempts" VALUES('01a1ebd0-6a2c-7f97-96aa-6b161e79ea3b',1,1,'vm:8694:c2bd752d',1794957667.29,1794957667.318,NULL,1794957697.29,'retried','ValueError: card declined

Traceback (most recent call last):
  File "/srv/tests/stored/shop.py", line 28, in refuse
    raise ValueError(reason)
ValueError: card declined
');
INSERT INTO "relet_attempts" VALUES('01a1ebd0-6a2c-7f97-96aa-6b161e79ea3b',2,2,'vm:8694:c2bd752d',1794957667.33,1794957667.332,NULL,1794957697.33,'failed','ValueError: card declined

Traceback (most recent call last):
  File "/srv/tests/stored/shop.py", line 28, in refuse
    raise ValueError(reason)
ValueError: card declined
');
INSERT INTO "relet_attempts" VALUES('01a1ebd0-6c31-72cf-8017-ac6009746473',1,1,'vm:8745:6d4c3b85',1794957667.718,1794957667.729,NULL,1794957697.718,'snoozed',NULL);
CREATE TABLE relet_audit (
    seq      integer primary key autoincrement,
    id       text not null unique,  
    at       real not null,
    who      text not null,
    what     text not null,
    subject  text not null,
    detail   text
);
INSERT INTO "relet_audit" VALUES(1,'01a1ebd0-6c29-714b-abe8-3d9b2eb1400c',1794957667.373,'ada','cancel','01a1ebd0-6c25-7113-8c9f-e5a0102f81db',NULL);
INSERT INTO "relet_audit" VALUES(2,'01a1ebd0-6f9d-77d8-bfa7-f979b5f69906',1794957668.253,'ada','pause_queue','paused',NULL);
CREATE TABLE relet_dependencies (
    job         text not null,
    depends_on  text not null,  
    position    integer not null,
    state       text check (state in ('succeeded', 'failed', 'cancelled', 'deleted')),
    result      text,
    task        text,  
    primary key (job, depends_on)
);
INSERT INTO "relet_dependencies" VALUES('01a1ebd0-6f7e-71bf-accc-1e383814b869','01a1ebd0-6f61-7153-acfc-af4393360f45',0,NULL,NULL,NULL);
INSERT INTO "relet_dependencies" VALUES('01a1ebd0-6f7e-71bf-accc-1e383814b869','01a1ebd0-6f65-7282-8e14-76611d052098',1,NULL,NULL,NULL);
INSERT INTO "relet_dependencies" VALUES('01a1ebd0-6f7e-71bf-accc-1e383814b869','01a1ebd0-6f6c-767b-ad4c-2d0d5f1a64f6',2,NULL,NULL,NULL);
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
INSERT INTO "relet_finished" VALUES('01a1ebd0-6a25-7a68-9136-e0b14d140893','succeeded','default','double',0,NULL,NULL,'{"number":1}','2',NULL,1,4,0,1,'vm:8694:c2bd752d','be1d4a39-52b3-487e-b3d3-918312a077b6','01a1ebd0-6a25-7a68-9136-e0b14d140893',0,0,NULL,1794957666.853,1794957666.853,1794957667.29,NULL,NULL,1794957667.297);
INSERT INTO "relet_finished" VALUES('01a1ebd0-6a29-7ed1-b400-0dc2f3ac5d90','succeeded','default','first',0,NULL,NULL,'{"number":2}',NULL,NULL,1,4,0,1,'vm:8694:c2bd752d','be1d4a39-52b3-487e-b3d3-918312a077b6','01a1ebd0-6a29-7ed1-b400-0dc2f3ac5d90',0,1,NULL,1794957666.857,1794957666.857,1794957667.29,NULL,NULL,1794957667.303);
INSERT INTO "relet_finished" VALUES('01a1ebd0-6bdb-7094-a0af-cb6041b12f32','succeeded','default','double',0,NULL,NULL,'{"number":2}','4',NULL,1,4,0,1,'vm:8694:c2bd752d','60210393-6b64-4680-910d-eb4d2fd92d0b','01a1ebd0-6a29-7ed1-b400-0dc2f3ac5d90',1,0,NULL,1794957667.304,1794957667.304,1794957667.319,NULL,NULL,1794957667.325);
INSERT INTO "relet_finished" VALUES('01a1ebd0-6c25-7113-8c9f-e5a0102f81db','cancelled','default','double',0,NULL,NULL,'{"number":3}',NULL,NULL,0,4,0,0,NULL,NULL,'01a1ebd0-6c25-7113-8c9f-e5a0102f81db',0,0,NULL,1794957667.366,1794961267.366,NULL,NULL,NULL,1794957667.371);
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
    stopped_at        real,
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
INSERT INTO "relet_jobs" VALUES('01a1ebd0-6a2c-7f97-96aa-6b161e79ea3b',6,'failed',NULL,'default','refuse',0,0,'blocked',NULL,1,'{"reason":"card declined"}',1.79495766731927585604e+09,2,2,0,0,2,'{"backoff":[0.01,0.01,2.0,true]}',NULL,NULL,'48cedc2f-60cd-4174-b231-2fadcb7ebb7d',NULL,NULL,NULL,0,NULL,NULL,'ValueError: card declined

Traceback (most recent call last):
  File "/srv/tests/stored/shop.py", line 28, in refuse
    raise ValueError(reason)
ValueError: card declined
','01a1ebd0-6a2c-7f97-96aa-6b161e79ea3b',0,0,0,NULL,NULL,1,NULL,0,1794957666.861,1794957667.333);
INSERT INTO "relet_jobs" VALUES('01a1ebd0-6c31-72cf-8017-ac6009746473',8,'pending','time','default','approve',0,0,NULL,NULL,0,'{"amount":7}',2111181667.73,0,4,0,0,1,NULL,NULL,NULL,'9944cf0a-25c5-47d1-b379-670c256fa4da',NULL,NULL,NULL,0,NULL,NULL,NULL,'01a1ebd0-6c31-72cf-8017-ac6009746473',0,0,0,'answer',NULL,0,NULL,0,1794957667.378,NULL);
INSERT INTO "relet_jobs" VALUES('01a1ebd0-6dae-7b1b-a725-cb7c4bd5fb20',9,'running',NULL,'abandoned','die',0,0,NULL,NULL,0,'{"folder":"/tmp/tmpyc_3c_99"}',1794957667.758,1,4,0,0,1,NULL,NULL,'vm:8770:ab73c7c0','645099ff-bf15-4ef2-9e49-9e714bf9d0ef',1794957698.153,NULL,1794957668.153,0,NULL,NULL,NULL,'01a1ebd0-6dae-7b1b-a725-cb7c4bd5fb20',0,0,0,NULL,NULL,0,NULL,0,1794957667.758,NULL);
INSERT INTO "relet_jobs" VALUES('01a1ebd0-6f61-7153-acfc-af4393360f45',10,'queued',NULL,'waiting','double',0,0,NULL,NULL,0,'{"number":0}',1794957668.194,0,4,0,0,0,NULL,NULL,NULL,NULL,NULL,NULL,NULL,0,NULL,NULL,NULL,'01a1ebd0-6f61-7153-acfc-af4393360f45',0,0,0,NULL,NULL,0,NULL,0,1794957668.194,NULL);
INSERT INTO "relet_jobs" VALUES('01a1ebd0-6f65-7282-8e14-76611d052098',11,'queued',NULL,'waiting','double',1,-1,NULL,NULL,0,'{"number":1}',1794957668.197,0,4,0,0,0,NULL,NULL,NULL,NULL,NULL,NULL,NULL,0,NULL,NULL,NULL,'01a1ebd0-6f65-7282-8e14-76611d052098',0,0,0,NULL,NULL,0,NULL,0,1794957668.197,NULL);
INSERT INTO "relet_jobs" VALUES('01a1ebd0-6f6c-767b-ad4c-2d0d5f1a64f6',12,'queued',NULL,'waiting','double',2,-2,NULL,NULL,0,'{"number":2}',1794957668.204,0,4,0,0,0,NULL,NULL,NULL,NULL,NULL,NULL,NULL,0,NULL,NULL,NULL,'01a1ebd0-6f6c-767b-ad4c-2d0d5f1a64f6',0,0,0,NULL,NULL,0,NULL,0,1794957668.204,NULL);
INSERT INTO "relet_jobs" VALUES('01a1ebd0-6f70-76fa-9d18-bc8b66de1978',13,'pending','time','waiting','double',0,0,NULL,NULL,0,'{"number":10}',1794957669.208,0,4,0,0,0,NULL,NULL,NULL,NULL,NULL,NULL,NULL,0,NULL,NULL,NULL,'01a1ebd0-6f70-76fa-9d18-bc8b66de1978',0,0,0,NULL,NULL,0,NULL,0,1794957668.208,NULL);
INSERT INTO "relet_jobs" VALUES('01a1ebd0-6f75-7d31-963c-36ff50a52099',14,'pending','target','waiting','double',0,0,'blocked',NULL,0,'{"number":11}',1794957668.213,0,4,0,0,0,NULL,NULL,NULL,NULL,NULL,NULL,NULL,0,NULL,NULL,NULL,'01a1ebd0-6f75-7d31-963c-36ff50a52099',0,0,0,NULL,NULL,0,NULL,0,1794957668.213,NULL);
INSERT INTO "relet_jobs" VALUES('01a1ebd0-6f76-7671-a8a5-8df2a898b07c',15,'queued',NULL,'waiting','double',0,0,NULL,NULL,0,'{"number":12}',1794957668.215,0,4,0,0,0,NULL,NULL,NULL,NULL,NULL,NULL,NULL,0,NULL,NULL,NULL,'01a1ebd0-6f76-7671-a8a5-8df2a898b07c',0,0,0,NULL,NULL,0,'once',0,1794957668.215,NULL);
INSERT INTO "relet_jobs" VALUES('01a1ebd0-6f7b-72e0-875a-5ccec2a02b61',16,'queued',NULL,'waiting','double',0,0,NULL,NULL,0,'{"number":13}',1794957668.22,0,4,0,0,0,NULL,NULL,NULL,NULL,NULL,NULL,NULL,0,NULL,NULL,NULL,'01a1ebd0-6f7b-72e0-875a-5ccec2a02b61',0,0,0,NULL,NULL,0,'window',1,1794957668.22,NULL);
INSERT INTO "relet_jobs" VALUES('01a1ebd0-6f7e-71bf-accc-1e383814b869',17,'pending','jobs','waiting','collect',0,0,NULL,NULL,0,'{}',1794957668.223,0,4,0,0,0,NULL,NULL,NULL,NULL,NULL,NULL,NULL,0,NULL,NULL,NULL,'01a1ebd0-6f7e-71bf-accc-1e383814b869',0,3,3,NULL,NULL,0,NULL,0,1794957668.223,NULL);
INSERT INTO "relet_jobs" VALUES('01a1ebd0-6f83-7c86-a8e3-750688733750',18,'paused',NULL,'waiting','double',0,0,NULL,NULL,0,'{"number":14}',1794957668.228,0,4,0,0,0,NULL,NULL,NULL,NULL,NULL,NULL,NULL,0,NULL,NULL,NULL,'01a1ebd0-6f83-7c86-a8e3-750688733750',0,0,0,NULL,NULL,0,NULL,0,1794957668.228,1794957668.233);
INSERT INTO "relet_jobs" VALUES('01a1ebd0-6f8a-7f2e-8456-69658d771442',19,'queued',NULL,'paused','double',0,0,NULL,NULL,0,'{"number":15}',1794957668.234,0,4,0,0,0,NULL,NULL,NULL,NULL,NULL,NULL,NULL,0,NULL,NULL,NULL,'01a1ebd0-6f8a-7f2e-8456-69658d771442',0,0,0,NULL,NULL,0,NULL,0,1794957668.234,NULL);
INSERT INTO "relet_jobs" VALUES('01a1ebd0-6f90-7f41-a944-df8ee3b784b8',20,'queued',NULL,'limited','double',0,0,NULL,'a',0,'{"number":0}',1794957668.24,0,4,0,0,0,NULL,NULL,NULL,NULL,NULL,NULL,NULL,0,NULL,NULL,NULL,'01a1ebd0-6f90-7f41-a944-df8ee3b784b8',0,0,0,NULL,NULL,0,NULL,0,1794957668.24,NULL);
INSERT INTO "relet_jobs" VALUES('01a1ebd0-6f94-73fc-9484-018155536c96',21,'queued',NULL,'limited','double',0,0,NULL,'a',0,'{"number":1}',1794957668.244,0,4,0,0,0,NULL,NULL,NULL,NULL,NULL,NULL,NULL,0,NULL,NULL,NULL,'01a1ebd0-6f94-73fc-9484-018155536c96',0,0,0,NULL,NULL,0,NULL,0,1794957668.244,NULL);
INSERT INTO "relet_jobs" VALUES('01a1ebd0-6f96-76bb-af57-6ffebef91a5e',22,'queued',NULL,'limited','double',0,0,NULL,'b',0,'{"number":2}',1794957668.248,0,4,0,0,0,NULL,NULL,NULL,NULL,NULL,NULL,NULL,0,NULL,NULL,NULL,'01a1ebd0-6f96-76bb-af57-6ffebef91a5e',0,0,0,NULL,NULL,0,NULL,0,1794957668.248,NULL);
CREATE TABLE relet_keys (
    key    text primary key not null,
    job    text not null,
    until  real
);
INSERT INTO "relet_keys" VALUES('once','01a1ebd0-6f76-7671-a8a5-8df2a898b07c',NULL);
INSERT INTO "relet_keys" VALUES('window','01a1ebd0-6f7b-72e0-875a-5ccec2a02b61',1794957728.22);
CREATE TABLE relet_migrations (version integer primary key, applied_at real not null, oldest integer, release text);
INSERT INTO "relet_migrations" VALUES(1,1.79495766683900809289e+09,1,'0.1.0');
CREATE TABLE relet_nudges (
    id      integer primary key autoincrement,
    kind    text not null check (kind in ('target', 'job', 'chain', 'signal')),
    key     text not null,
    beyond  text
);
INSERT INTO "relet_nudges" VALUES(6,'target','blocked',NULL);
INSERT INTO "relet_nudges" VALUES(7,'job','01a1ebd0-6f7e-71bf-accc-1e383814b869',NULL);
CREATE TABLE relet_operations (
    id       text primary key,
    verb     text not null,
    subject  text not null,
    request  text,  
    outcome  text,  
    at       real not null
) without rowid;
INSERT INTO "relet_operations" VALUES('01a1ebd0-6a21-70f0-b432-06e91346d612','limit_queue','limited',NULL,'{}',1794957666.851);
INSERT INTO "relet_operations" VALUES('01a1ebd0-6c29-7671-896b-0451bfc74461','cancel','01a1ebd0-6c25-7113-8c9f-e5a0102f81db',NULL,'{"jobs":[{"id":"01a1ebd0-6c25-7113-8c9f-e5a0102f81db","task":"double","queue":"default","state":"cancelled","priority":0,"payload":"null","attempt":0,"max_attempts":4,"losses":0,"version":0,"chain":"01a1ebd0-6c25-7113-8c9f-e5a0102f81db","position":0,"created_at":"2026-11-17T23:21:07.366000Z","run_at":"2026-11-18T00:21:07.366000Z","started_at":null,"finished_at":"2026-11-17T23:21:07.371000Z","wait":null,"target":null,"holds":false,"unique":null,"worker":null,"expires_at":null,"request":null,"result":null,"error":null,"continued":false,"progress":null,"group":null,"awaits":null,"context":null,"renewed_at":null,"existing":false}]}',1794957667.37);
INSERT INTO "relet_operations" VALUES('01a1ebd0-6f85-7fc7-bc7f-c3ad5ab6b4a0','pause','01a1ebd0-6f83-7c86-a8e3-750688733750',NULL,'{"jobs":[{"id":"01a1ebd0-6f83-7c86-a8e3-750688733750","task":"double","queue":"waiting","state":"paused","priority":0,"payload":"null","attempt":0,"max_attempts":4,"losses":0,"version":0,"chain":"01a1ebd0-6f83-7c86-a8e3-750688733750","position":0,"created_at":"2026-11-17T23:21:08.228000Z","run_at":"2026-11-17T23:21:08.228000Z","started_at":null,"finished_at":"2026-11-17T23:21:08.233000Z","wait":null,"target":null,"holds":false,"unique":null,"worker":null,"expires_at":null,"request":null,"result":null,"error":null,"continued":false,"progress":null,"group":null,"awaits":null,"context":null,"renewed_at":null,"existing":false}]}',1794957668.229);
INSERT INTO "relet_operations" VALUES('01a1ebd0-6f9d-7873-ba1d-372a4f0bfd57','pause_queue','paused',NULL,'{}',1794957668.253);
CREATE TABLE relet_pulse (
    single       integer primary key check (single = 1),
    touched_at   real not null default 0,
    grace_until  real not null default 0
);
INSERT INTO "relet_pulse" VALUES(1,1794957668.097,1794957677.269);
CREATE TABLE relet_quarantine (
    single  integer primary key check (single = 1),
    worker  text,
    until   real not null default 0
);
INSERT INTO "relet_quarantine" VALUES(1,NULL,1794957671.105);
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
INSERT INTO "relet_queue_samples" VALUES('default',1,2,0,0,0,4.2500019073486328125e-01,1794957667.281);
INSERT INTO "relet_queue_samples" VALUES('limited',0,0,0,0,0,NULL,1794957667.281);
CREATE TABLE relet_queues (
    queue        text primary key not null,
    paused       integer not null default 0,
    max_running  integer check (max_running >= 0),
    fair         integer not null default 0,  
    rated        integer not null default 0,  
    by_group     integer not null default 0,  
    last_group   text,  
    limited      integer not null generated always as (max_running is not null or fair or rated) stored
);
INSERT INTO "relet_queues" VALUES('limited',0,2,1,1,1,NULL);
INSERT INTO "relet_queues" VALUES('paused',1,NULL,0,0,0,NULL);
CREATE TABLE relet_rates (
    queue      text not null,
    group_key  text not null,
    rate       integer not null check (rate >= 0),
    per        real not null check (per > 0),
    primary key (queue, group_key)
);
INSERT INTO "relet_rates" VALUES('limited','*',5,1.0);
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
INSERT INTO "relet_schedules" VALUES('report','report','{"draft":{"id":"01a1ebd0-6b9f-7f1a-a6ad-640d18446180","task":"report","payload":"{}","queue":"default","priority":0,"run_at":null,"delay":null,"target":null,"group":null,"unique":null,"unique_for":null,"replace":false,"depends_on":[],"policy":{"max_attempts":4,"backoff":{"base":0.5,"max":30.0,"factor":2.0,"jitter":true},"lease":null,"timeout":null,"on_expired":"retry","on_failure":"hold","on_dependency_failure":"hold"},"context":null,"fresh":true},"cron":"0 3 * * *"}','{"draft":{"id":"","task":"report","payload":"{}","queue":"default","priority":0,"run_at":null,"delay":null,"target":null,"group":null,"unique":null,"unique_for":null,"replace":false,"depends_on":[],"policy":{"max_attempts":4,"backoff":{"base":0.5,"max":30.0,"factor":2.0,"jitter":true},"lease":null,"timeout":null,"on_expired":"retry","on_failure":"hold","on_dependency_failure":"hold"},"context":null,"fresh":true},"cron":"0 3 * * *"}',0,1794970800.0,1794957667.272,1794957667.272);
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
INSERT INTO "relet_stats" VALUES(60,1794957660.0,'','sampled',0,1,1.0);
INSERT INTO "relet_stats" VALUES(60,1794957660.0,'default','gauge.pending',0,1,1.0);
INSERT INTO "relet_stats" VALUES(60,1794957660.0,'default','gauge.queued',0,1,2.0);
INSERT INTO "relet_stats" VALUES(60,1794957660.0,'default','gauge.running',0,1,0.0);
INSERT INTO "relet_stats" VALUES(60,1794957660.0,'default','gauge.paused_jobs',0,1,0.0);
INSERT INTO "relet_stats" VALUES(60,1794957660.0,'default','gauge.failed',0,1,0.0);
INSERT INTO "relet_stats" VALUES(60,1794957660.0,'default','gauge.oldest',0,1,4.2500019073486328125e-01);
INSERT INTO "relet_stats" VALUES(60,1794957660.0,'limited','gauge.pending',0,1,0.0);
INSERT INTO "relet_stats" VALUES(60,1794957660.0,'limited','gauge.queued',0,1,0.0);
INSERT INTO "relet_stats" VALUES(60,1794957660.0,'limited','gauge.running',0,1,0.0);
INSERT INTO "relet_stats" VALUES(60,1794957660.0,'limited','gauge.paused_jobs',0,1,0.0);
INSERT INTO "relet_stats" VALUES(60,1794957660.0,'limited','gauge.failed',0,1,0.0);
INSERT INTO "relet_stats" VALUES(60,1794957660.0,'limited','gauge.oldest',0,1,0.0);
INSERT INTO "relet_stats" VALUES(-60,1794957660.0,'*','gauge.pending',0,1,1.0);
INSERT INTO "relet_stats" VALUES(-60,1794957660.0,'*','gauge.queued',0,1,2.0);
INSERT INTO "relet_stats" VALUES(-60,1794957660.0,'*','gauge.running',0,1,0.0);
INSERT INTO "relet_stats" VALUES(-60,1794957660.0,'*','gauge.paused_jobs',0,1,0.0);
INSERT INTO "relet_stats" VALUES(-60,1794957660.0,'*','gauge.failed',0,1,0.0);
INSERT INTO "relet_stats" VALUES(-60,1794957660.0,'*','gauge.oldest',0,1,4.2500019073486328125e-01);
CREATE TABLE relet_steps (
    job      text not null,
    kind     text not null check (kind in ('step', 'sleep', 'wait', 'missed')),
    name     text not null,
    result   text,
    until    real,
    done_at  real not null,
    primary key (job, kind, name)
);
INSERT INTO "relet_steps" VALUES('01a1ebd0-6c31-72cf-8017-ac6009746473','step','charge','"charged 7"',NULL,1794957667.725);
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
INSERT INTO "relet_workers" VALUES('vm:8694:c2bd752d','vm',8694,'{"name":"vm:8694:c2bd752d","host":"vm","pid":8694,"queues":["default"],"slots":10,"tasks":["approve","collect","die","double","first","refuse","report"],"lease":30.0,"version":"0.1.0"}',0,0,'a2ae4f8f-1bac-4586-a5a9-9e3e748f29c5',1794957667.27,1794957667.27);
INSERT INTO "relet_workers" VALUES('vm:8745:6d4c3b85','vm',8745,'{"name":"vm:8745:6d4c3b85","host":"vm","pid":8745,"queues":["default"],"slots":10,"tasks":["approve","collect","die","double","first","refuse","report"],"lease":30.0,"version":"0.1.0"}',0,0,'dabf854b-1ca6-4403-828b-87e33dbdd3cd',1794957667.692,1794957667.692);
INSERT INTO "relet_workers" VALUES('vm:8770:ab73c7c0','vm',8770,'{"name":"vm:8770:ab73c7c0","host":"vm","pid":8770,"queues":["abandoned"],"slots":10,"tasks":["approve","collect","die","double","first","refuse","report"],"lease":30.0,"version":"0.1.0"}',0,0,'8247bf1c-70b5-4733-a448-ca3745b0f6a1',1794957668.105,1794957668.105);
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
CREATE VIEW relet_live_jobs as
    select state, wait, losses, token, holds, waits, expires_at, request, awaits, policy, progress, error,
           null as result, 0 as continued, stopped_at as finished_at, id, chain, created_at, run_at, attempt, max_attempts, version, position, priority, queue, task, payload, started_at, renewed_at, worker, target, group_key, unique_key, context
    from relet_jobs;
CREATE VIEW relet_over_jobs as
    select state, null as wait, losses, token, 0 as holds, 0 as waits, null as expires_at, null as request,
           null as awaits, null as policy, null as progress, error, result, continued, finished_at, id, chain, created_at, run_at, attempt, max_attempts, version, position, priority, queue, task, payload, started_at, renewed_at, worker, target, group_key, unique_key, context
    from relet_finished;
CREATE VIEW relet_all_jobs as select * from relet_live_jobs union all select * from relet_over_jobs;
DELETE FROM "sqlite_sequence";
INSERT INTO "sqlite_sequence" VALUES('relet_nudges',7);
INSERT INTO "sqlite_sequence" VALUES('relet_audit',2);
COMMIT;
