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
INSERT INTO "relet_attempts" VALUES('01a1ec87-8d3b-7a37-8881-f7734470816d',1,1,'vm:3508:14f1ee1b',1794969669.122,1794969669.137,NULL,1794969699.122,'retried','ValueError: card declined

Traceback (most recent call last):
  File "/srv/tests/stored/shop.py", line 28, in refuse
    raise ValueError(reason)
ValueError: card declined
');
INSERT INTO "relet_attempts" VALUES('01a1ec87-8d3b-7a37-8881-f7734470816d',2,2,'vm:3508:14f1ee1b',1794969669.151,1794969669.152,NULL,1794969699.151,'failed','ValueError: card declined

Traceback (most recent call last):
  File "/srv/tests/stored/shop.py", line 28, in refuse
    raise ValueError(reason)
ValueError: card declined
');
INSERT INTO "relet_attempts" VALUES('01a1ec87-8e34-7b8a-8163-a70bbc7aeb6d',1,1,'vm:3523:2f432cbd',1794969669.403,1794969669.41,NULL,1794969699.403,'snoozed',NULL);
CREATE TABLE relet_audit (
    seq      integer primary key autoincrement,
    id       text not null unique,  
    at       real not null,
    who      text not null,
    what     text not null,
    subject  text not null,
    detail   text
);
INSERT INTO "relet_audit" VALUES(1,'01a1ec87-8e30-7bea-8023-2892511faf20',1794969669.171,'ada','cancel','01a1ec87-8e2c-7b00-bb02-2f1367a11c81',NULL);
INSERT INTO "relet_audit" VALUES(2,'01a1ec87-9015-779e-a2ff-06746fd9f168',1794969669.653,'ada','pause_queue','paused',NULL);
CREATE TABLE relet_dependencies (
    job         text not null,
    depends_on  text not null,  
    position    integer not null,
    state       text check (state in ('succeeded', 'failed', 'cancelled', 'deleted')),
    result      text,
    task        text,  
    primary key (job, depends_on)
);
INSERT INTO "relet_dependencies" VALUES('01a1ec87-900e-7d4d-8e9e-d67922dde04a','01a1ec87-9006-7c79-82a4-9477d9dc34be',0,NULL,NULL,NULL);
INSERT INTO "relet_dependencies" VALUES('01a1ec87-900e-7d4d-8e9e-d67922dde04a','01a1ec87-9007-70c0-95d7-f8d26d90113f',1,NULL,NULL,NULL);
INSERT INTO "relet_dependencies" VALUES('01a1ec87-900e-7d4d-8e9e-d67922dde04a','01a1ec87-9008-7818-b9e1-098b79cd7b8c',2,NULL,NULL,NULL);
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
INSERT INTO "relet_finished" VALUES('01a1ec87-8d38-7224-8c8e-c3693501dfea','succeeded','default','double',0,NULL,NULL,'{"number":1}','2',NULL,1,4,0,1,'vm:3508:14f1ee1b','62ee05ac-1fce-422c-a76c-372a3434eadb','01a1ec87-8d38-7224-8c8e-c3693501dfea',0,0,NULL,1794969668.921,1794969668.921,1794969669.122,NULL,NULL,1794969669.126);
INSERT INTO "relet_finished" VALUES('01a1ec87-8d3a-7670-8c2b-4271ab4b01f8','succeeded','default','first',0,NULL,NULL,'{"number":2}',NULL,NULL,1,4,0,1,'vm:3508:14f1ee1b','62ee05ac-1fce-422c-a76c-372a3434eadb','01a1ec87-8d3a-7670-8c2b-4271ab4b01f8',0,1,NULL,1794969668.922,1794969668.922,1794969669.122,NULL,NULL,1794969669.13);
INSERT INTO "relet_finished" VALUES('01a1ec87-8e04-731d-ae7d-b8276d026491','succeeded','default','double',0,NULL,NULL,'{"number":2}','4',NULL,1,4,0,1,'vm:3508:14f1ee1b','79ca93b6-4ffb-4dc1-bc8e-7698f182ac39','01a1ec87-8d3a-7670-8c2b-4271ab4b01f8',1,0,NULL,1794969669.132,1794969669.132,1794969669.14,NULL,NULL,1794969669.142);
INSERT INTO "relet_finished" VALUES('01a1ec87-8e2c-7b00-bb02-2f1367a11c81','cancelled','default','double',0,NULL,NULL,'{"number":3}',NULL,NULL,0,4,0,0,NULL,NULL,'01a1ec87-8e2c-7b00-bb02-2f1367a11c81',0,0,NULL,1794969669.166,1794973269.166,NULL,NULL,NULL,1794969669.169);
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
INSERT INTO "relet_jobs" VALUES('01a1ec87-8d3b-7a37-8881-f7734470816d',6,'failed',NULL,'default','refuse',0,0,'blocked',NULL,1,'{"reason":"card declined"}',1.79496966914717984197e+09,2,2,0,0,2,'{"backoff":[0.01,0.01,2.0,true]}',NULL,NULL,'b0764e89-ae44-4834-896b-671a321e7510',NULL,NULL,NULL,0,NULL,NULL,'ValueError: card declined

Traceback (most recent call last):
  File "/srv/tests/stored/shop.py", line 28, in refuse
    raise ValueError(reason)
ValueError: card declined
','01a1ec87-8d3b-7a37-8881-f7734470816d',0,0,0,NULL,NULL,1,NULL,0,1794969668.924,1794969669.152,NULL);
INSERT INTO "relet_jobs" VALUES('01a1ec87-8e34-7b8a-8163-a70bbc7aeb6d',8,'pending','time','default','approve',0,0,NULL,NULL,0,'{"amount":7}',2111193669.41,0,4,0,0,1,NULL,NULL,NULL,'5a3ec64f-6f7c-40ba-a605-cdd7321835da',NULL,NULL,NULL,0,NULL,NULL,NULL,'01a1ec87-8e34-7b8a-8163-a70bbc7aeb6d',0,0,0,'answer',NULL,0,NULL,0,1794969669.172,NULL,NULL);
INSERT INTO "relet_jobs" VALUES('01a1ec87-8f35-7a78-8575-9afdc20d03cc',9,'running',NULL,'abandoned','die',0,0,NULL,NULL,0,'{"folder":"/tmp/tmpb8vogoqz"}',1794969669.429,1,4,0,0,1,NULL,NULL,'vm:3536:8e6f1192','8f4c5bff-7cf5-4704-96c2-59f68a8c9f50',1794969699.615,NULL,1794969669.615,0,NULL,NULL,NULL,'01a1ec87-8f35-7a78-8575-9afdc20d03cc',0,0,0,NULL,NULL,0,NULL,0,1794969669.429,NULL,NULL);
INSERT INTO "relet_jobs" VALUES('01a1ec87-9006-7c79-82a4-9477d9dc34be',10,'queued',NULL,'waiting','double',0,0,NULL,NULL,0,'{"number":0}',1794969669.638,0,4,0,0,0,NULL,NULL,NULL,NULL,NULL,NULL,NULL,0,NULL,NULL,NULL,'01a1ec87-9006-7c79-82a4-9477d9dc34be',0,0,0,NULL,NULL,0,NULL,0,1794969669.638,NULL,NULL);
INSERT INTO "relet_jobs" VALUES('01a1ec87-9007-70c0-95d7-f8d26d90113f',11,'queued',NULL,'waiting','double',1,-1,NULL,NULL,0,'{"number":1}',1794969669.639,0,4,0,0,0,NULL,NULL,NULL,NULL,NULL,NULL,NULL,0,NULL,NULL,NULL,'01a1ec87-9007-70c0-95d7-f8d26d90113f',0,0,0,NULL,NULL,0,NULL,0,1794969669.639,NULL,NULL);
INSERT INTO "relet_jobs" VALUES('01a1ec87-9008-7818-b9e1-098b79cd7b8c',12,'queued',NULL,'waiting','double',2,-2,NULL,NULL,0,'{"number":2}',1794969669.64,0,4,0,0,0,NULL,NULL,NULL,NULL,NULL,NULL,NULL,0,NULL,NULL,NULL,'01a1ec87-9008-7818-b9e1-098b79cd7b8c',0,0,0,NULL,NULL,0,NULL,0,1794969669.64,NULL,NULL);
INSERT INTO "relet_jobs" VALUES('01a1ec87-9009-7b4c-8fa4-d68ce1ae2d4c',13,'pending','time','waiting','double',0,0,NULL,NULL,0,'{"number":10}',1794969670.641,0,4,0,0,0,NULL,NULL,NULL,NULL,NULL,NULL,NULL,0,NULL,NULL,NULL,'01a1ec87-9009-7b4c-8fa4-d68ce1ae2d4c',0,0,0,NULL,NULL,0,NULL,0,1794969669.641,NULL,NULL);
INSERT INTO "relet_jobs" VALUES('01a1ec87-900a-7f96-89ed-6324b7e51dea',14,'pending','target','waiting','double',0,0,'blocked',NULL,0,'{"number":11}',1794969669.642,0,4,0,0,0,NULL,NULL,NULL,NULL,NULL,NULL,NULL,0,NULL,NULL,NULL,'01a1ec87-900a-7f96-89ed-6324b7e51dea',0,0,0,NULL,NULL,0,NULL,0,1794969669.642,NULL,NULL);
INSERT INTO "relet_jobs" VALUES('01a1ec87-900b-7601-ab25-dd7b637067bb',15,'queued',NULL,'waiting','double',0,0,NULL,NULL,0,'{"number":12}',1794969669.643,0,4,0,0,0,NULL,NULL,NULL,NULL,NULL,NULL,NULL,0,NULL,NULL,NULL,'01a1ec87-900b-7601-ab25-dd7b637067bb',0,0,0,NULL,NULL,0,'once',0,1794969669.643,NULL,NULL);
INSERT INTO "relet_jobs" VALUES('01a1ec87-900c-7df7-911f-a0d0b0fbf5de',16,'queued',NULL,'waiting','double',0,0,NULL,NULL,0,'{"number":13}',1794969669.645,0,4,0,0,0,NULL,NULL,NULL,NULL,NULL,NULL,NULL,0,NULL,NULL,NULL,'01a1ec87-900c-7df7-911f-a0d0b0fbf5de',0,0,0,NULL,NULL,0,'window',1,1794969669.645,NULL,NULL);
INSERT INTO "relet_jobs" VALUES('01a1ec87-900e-7d4d-8e9e-d67922dde04a',17,'pending','jobs','waiting','collect',0,0,NULL,NULL,0,'{}',1794969669.646,0,4,0,0,0,NULL,NULL,NULL,NULL,NULL,NULL,NULL,0,NULL,NULL,NULL,'01a1ec87-900e-7d4d-8e9e-d67922dde04a',0,3,3,NULL,NULL,0,NULL,0,1794969669.646,NULL,NULL);
INSERT INTO "relet_jobs" VALUES('01a1ec87-900f-76f2-8f4f-cfa5e23a4dad',18,'paused',NULL,'waiting','double',0,0,NULL,NULL,0,'{"number":14}',1794969669.647,0,4,0,0,0,NULL,NULL,NULL,NULL,NULL,NULL,NULL,0,NULL,NULL,NULL,'01a1ec87-900f-76f2-8f4f-cfa5e23a4dad',0,0,0,NULL,NULL,0,NULL,0,1794969669.647,1794969669.649,NULL);
INSERT INTO "relet_jobs" VALUES('01a1ec87-9012-7bb4-9a00-71f4a507167e',19,'queued',NULL,'paused','double',0,0,NULL,NULL,0,'{"number":15}',1794969669.65,0,4,0,0,0,NULL,NULL,NULL,NULL,NULL,NULL,NULL,0,NULL,NULL,NULL,'01a1ec87-9012-7bb4-9a00-71f4a507167e',0,0,0,NULL,NULL,0,NULL,0,1794969669.65,NULL,NULL);
INSERT INTO "relet_jobs" VALUES('01a1ec87-9013-7594-842f-cfa28506c228',20,'queued',NULL,'limited','double',0,0,NULL,'a',0,'{"number":0}',1794969669.651,0,4,0,0,0,NULL,NULL,NULL,NULL,NULL,NULL,NULL,0,NULL,NULL,NULL,'01a1ec87-9013-7594-842f-cfa28506c228',0,0,0,NULL,NULL,0,NULL,0,1794969669.651,NULL,NULL);
INSERT INTO "relet_jobs" VALUES('01a1ec87-9013-7b62-b525-90261e31a59d',21,'queued',NULL,'limited','double',0,0,NULL,'a',0,'{"number":1}',1794969669.652,0,4,0,0,0,NULL,NULL,NULL,NULL,NULL,NULL,NULL,0,NULL,NULL,NULL,'01a1ec87-9013-7b62-b525-90261e31a59d',0,0,0,NULL,NULL,0,NULL,0,1794969669.652,NULL,NULL);
INSERT INTO "relet_jobs" VALUES('01a1ec87-9014-7281-a8a2-d8f6c9bd7e31',22,'queued',NULL,'limited','double',0,0,NULL,'b',0,'{"number":2}',1794969669.652,0,4,0,0,0,NULL,NULL,NULL,NULL,NULL,NULL,NULL,0,NULL,NULL,NULL,'01a1ec87-9014-7281-a8a2-d8f6c9bd7e31',0,0,0,NULL,NULL,0,NULL,0,1794969669.652,NULL,NULL);
CREATE TABLE relet_keys (
    key    text primary key not null,
    job    text not null,
    until  real
);
INSERT INTO "relet_keys" VALUES('once','01a1ec87-900b-7601-ab25-dd7b637067bb',NULL);
INSERT INTO "relet_keys" VALUES('window','01a1ec87-900c-7df7-911f-a0d0b0fbf5de',1794969729.644);
CREATE TABLE relet_migrations (version integer primary key, applied_at real not null, oldest integer, release text);
INSERT INTO "relet_migrations" VALUES(1,1.79496966889501070969e+09,1,'0.1.0');
INSERT INTO "relet_migrations" VALUES(2,1.79496966889798784255e+09,1,'0.1.0');
CREATE TABLE relet_nudges (
    id      integer primary key autoincrement,
    kind    text not null check (kind in ('target', 'job', 'chain', 'signal')),
    key     text not null,
    beyond  text
);
INSERT INTO "relet_nudges" VALUES(6,'target','blocked',NULL);
INSERT INTO "relet_nudges" VALUES(7,'job','01a1ec87-900e-7d4d-8e9e-d67922dde04a',NULL);
CREATE TABLE relet_operations (
    id       text primary key,
    verb     text not null,
    subject  text not null,
    request  text,  
    outcome  text,  
    at       real not null
) without rowid;
INSERT INTO "relet_operations" VALUES('01a1ec87-8d24-7c39-a16b-b5e104055633','limit_queue','limited',NULL,'{}',1794969668.916);
INSERT INTO "relet_operations" VALUES('01a1ec87-8e30-7f82-97da-cf0403a84464','cancel','01a1ec87-8e2c-7b00-bb02-2f1367a11c81',NULL,'{"jobs":[{"id":"01a1ec87-8e2c-7b00-bb02-2f1367a11c81","task":"double","queue":"default","state":"cancelled","priority":0,"payload":"null","attempt":0,"max_attempts":4,"losses":0,"version":0,"chain":"01a1ec87-8e2c-7b00-bb02-2f1367a11c81","position":0,"created_at":"2026-11-18T02:41:09.166000Z","run_at":"2026-11-18T03:41:09.166000Z","started_at":null,"finished_at":"2026-11-18T02:41:09.169000Z","wait":null,"target":null,"holds":false,"unique":null,"worker":null,"expires_at":null,"request":null,"result":null,"error":null,"continued":false,"progress":null,"group":null,"awaits":null,"context":null,"renewed_at":null,"existing":false}]}',1794969669.168);
INSERT INTO "relet_operations" VALUES('01a1ec87-9010-74ee-bbc6-55215f8a59e2','pause','01a1ec87-900f-76f2-8f4f-cfa5e23a4dad',NULL,'{"jobs":[{"id":"01a1ec87-900f-76f2-8f4f-cfa5e23a4dad","task":"double","queue":"waiting","state":"paused","priority":0,"payload":"null","attempt":0,"max_attempts":4,"losses":0,"version":0,"chain":"01a1ec87-900f-76f2-8f4f-cfa5e23a4dad","position":0,"created_at":"2026-11-18T02:41:09.647000Z","run_at":"2026-11-18T02:41:09.647000Z","started_at":null,"finished_at":"2026-11-18T02:41:09.649000Z","wait":null,"target":null,"holds":false,"unique":null,"worker":null,"expires_at":null,"request":null,"result":null,"error":null,"continued":false,"progress":null,"group":null,"awaits":null,"context":null,"renewed_at":null,"existing":false}]}',1794969669.648);
INSERT INTO "relet_operations" VALUES('01a1ec87-9015-7f3b-8bb9-c6894fe376b9','pause_queue','paused',NULL,'{}',1794969669.653);
CREATE TABLE relet_pulse (
    single       integer primary key check (single = 1),
    touched_at   real not null default 0,
    grace_until  real not null default 0
);
INSERT INTO "relet_pulse" VALUES(1,1794969669.109,1794969679.109);
CREATE TABLE relet_quarantine (
    single  integer primary key check (single = 1),
    worker  text,
    until   real not null default 0
);
INSERT INTO "relet_quarantine" VALUES(1,NULL,1794969672.608);
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
INSERT INTO "relet_queue_samples" VALUES('default',1,2,0,0,0,1.94000005722045898437e-01,1794969669.118);
INSERT INTO "relet_queue_samples" VALUES('limited',0,0,0,0,0,NULL,1794969669.118);
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
INSERT INTO "relet_schedules" VALUES('report','report','{"draft":{"id":"01a1ec87-8dcd-7a1d-a7d5-f7c306101fb9","task":"report","payload":"{}","queue":"default","priority":0,"run_at":null,"delay":null,"target":null,"group":null,"unique":null,"unique_for":null,"replace":false,"depends_on":[],"policy":{"max_attempts":4,"backoff":{"base":0.5,"max":30.0,"factor":2.0,"jitter":true},"lease":null,"timeout":null,"on_expired":"retry","on_failure":"hold","on_dependency_failure":"hold","follow_up":null},"context":null,"fresh":true},"cron":"0 3 * * *"}','{"draft":{"id":"","task":"report","payload":"{}","queue":"default","priority":0,"run_at":null,"delay":null,"target":null,"group":null,"unique":null,"unique_for":null,"replace":false,"depends_on":[],"policy":{"max_attempts":4,"backoff":{"base":0.5,"max":30.0,"factor":2.0,"jitter":true},"lease":null,"timeout":null,"on_expired":"retry","on_failure":"hold","on_dependency_failure":"hold","follow_up":null},"context":null,"fresh":true},"cron":"0 3 * * *"}',0,1794970800.0,1794969669.111,1794969669.111);
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
INSERT INTO "relet_stats" VALUES(60,1794969660.0,'','sampled',0,1,1.0);
INSERT INTO "relet_stats" VALUES(60,1794969660.0,'default','gauge.pending',0,1,1.0);
INSERT INTO "relet_stats" VALUES(60,1794969660.0,'default','gauge.queued',0,1,2.0);
INSERT INTO "relet_stats" VALUES(60,1794969660.0,'default','gauge.running',0,1,0.0);
INSERT INTO "relet_stats" VALUES(60,1794969660.0,'default','gauge.paused_jobs',0,1,0.0);
INSERT INTO "relet_stats" VALUES(60,1794969660.0,'default','gauge.failed',0,1,0.0);
INSERT INTO "relet_stats" VALUES(60,1794969660.0,'default','gauge.oldest',0,1,1.94000005722045898437e-01);
INSERT INTO "relet_stats" VALUES(60,1794969660.0,'limited','gauge.pending',0,1,0.0);
INSERT INTO "relet_stats" VALUES(60,1794969660.0,'limited','gauge.queued',0,1,0.0);
INSERT INTO "relet_stats" VALUES(60,1794969660.0,'limited','gauge.running',0,1,0.0);
INSERT INTO "relet_stats" VALUES(60,1794969660.0,'limited','gauge.paused_jobs',0,1,0.0);
INSERT INTO "relet_stats" VALUES(60,1794969660.0,'limited','gauge.failed',0,1,0.0);
INSERT INTO "relet_stats" VALUES(60,1794969660.0,'limited','gauge.oldest',0,1,0.0);
INSERT INTO "relet_stats" VALUES(-60,1794969660.0,'*','gauge.pending',0,1,1.0);
INSERT INTO "relet_stats" VALUES(-60,1794969660.0,'*','gauge.queued',0,1,2.0);
INSERT INTO "relet_stats" VALUES(-60,1794969660.0,'*','gauge.running',0,1,0.0);
INSERT INTO "relet_stats" VALUES(-60,1794969660.0,'*','gauge.paused_jobs',0,1,0.0);
INSERT INTO "relet_stats" VALUES(-60,1794969660.0,'*','gauge.failed',0,1,0.0);
INSERT INTO "relet_stats" VALUES(-60,1794969660.0,'*','gauge.oldest',0,1,1.94000005722045898437e-01);
CREATE TABLE relet_steps (
    job      text not null,
    kind     text not null check (kind in ('step', 'sleep', 'wait', 'missed')),
    name     text not null,
    result   text,
    until    real,
    done_at  real not null,
    primary key (job, kind, name)
);
INSERT INTO "relet_steps" VALUES('01a1ec87-8e34-7b8a-8163-a70bbc7aeb6d','step','charge','"charged 7"',NULL,1794969669.405);
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
INSERT INTO "relet_workers" VALUES('vm:3508:14f1ee1b','vm',3508,'{"name":"vm:3508:14f1ee1b","host":"vm","pid":3508,"queues":["default"],"slots":10,"tasks":["approve","collect","die","double","first","refuse","report"],"lease":30.0,"version":"0.1.0"}',0,0,'f64b564b-9a8e-48a3-8f8c-bbc8d718af17',1794969669.11,1794969669.11);
INSERT INTO "relet_workers" VALUES('vm:3523:2f432cbd','vm',3523,'{"name":"vm:3523:2f432cbd","host":"vm","pid":3523,"queues":["default"],"slots":10,"tasks":["approve","collect","die","double","first","refuse","report"],"lease":30.0,"version":"0.1.0"}',0,0,'f96fa88a-9dfe-46d3-a4d1-74316621c626',1794969669.394,1794969669.394);
INSERT INTO "relet_workers" VALUES('vm:3536:8e6f1192','vm',3536,'{"name":"vm:3536:8e6f1192","host":"vm","pid":3536,"queues":["abandoned"],"slots":10,"tasks":["approve","collect","die","double","first","refuse","report"],"lease":30.0,"version":"0.1.0"}',0,0,'a61d7bc8-fadd-4673-b45c-53bbee66cd4a',1794969669.606,1794969669.606);
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
