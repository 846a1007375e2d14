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
INSERT INTO "relet_attempts" VALUES('01a1ed15-7c78-7839-ba6f-69addbbb4311',1,1,'vm:31674:03a30aeb',1794978971.267,1794978971.303,NULL,1794979001.267,'retried','ValueError: card declined

Traceback (most recent call last):
  File "/srv/tests/stored/shop.py", line 28, in refuse
    raise ValueError(reason)
ValueError: card declined
');
INSERT INTO "relet_attempts" VALUES('01a1ed15-7c78-7839-ba6f-69addbbb4311',2,2,'vm:31674:03a30aeb',1794978971.328,1794978971.334,NULL,1794979001.328,'failed','ValueError: card declined

Traceback (most recent call last):
  File "/srv/tests/stored/shop.py", line 28, in refuse
    raise ValueError(reason)
ValueError: card declined
');
INSERT INTO "relet_attempts" VALUES('01a1ed15-7ee0-7b50-812b-d751ddbd4103',1,1,'vm:31740:a40552a6',1794978972.027,1794978972.038,NULL,1794979002.027,'snoozed',NULL);
CREATE TABLE relet_audit (
    seq      integer primary key autoincrement,
    id       text not null unique,  
    at       real not null,
    who      text not null,
    what     text not null,
    subject  text not null,
    detail   text
);
INSERT INTO "relet_audit" VALUES(1,'01a1ed15-7ed6-7b32-8213-45087a054edc',1794978971.357,'ada','cancel','01a1ed15-7ed0-77e0-94b5-dd8e919f9c2a',NULL);
INSERT INTO "relet_audit" VALUES(2,'01a1ed15-83ce-7935-b618-71b1f77bc06e',1794978972.623,'ada','pause_queue','paused',NULL);
CREATE TABLE relet_dependencies (
    job         text not null,
    depends_on  text not null,  
    position    integer not null,
    state       text check (state in ('succeeded', 'failed', 'cancelled', 'deleted')),
    result      text,
    task        text,  
    primary key (job, depends_on)
);
INSERT INTO "relet_dependencies" VALUES('01a1ed15-83a5-7c88-a0f0-10d5507032c6','01a1ed15-8370-78c6-8fa5-06867b611029',0,NULL,NULL,NULL);
INSERT INTO "relet_dependencies" VALUES('01a1ed15-83a5-7c88-a0f0-10d5507032c6','01a1ed15-8371-73c0-b9b7-5ef47d6285c0',1,NULL,NULL,NULL);
INSERT INTO "relet_dependencies" VALUES('01a1ed15-83a5-7c88-a0f0-10d5507032c6','01a1ed15-8376-7da8-a4ef-1fa99e035971',2,NULL,NULL,NULL);
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
INSERT INTO "relet_finished" VALUES('01a1ed15-7c68-7ae6-b8ff-837801cbb31a','succeeded','default','double',0,NULL,NULL,'{"number":1}','2',NULL,1,4,0,1,'vm:31674:03a30aeb','5fec1a86-5170-420a-a348-a45ea24bd0f1','01a1ed15-7c68-7ae6-b8ff-837801cbb31a',0,0,NULL,1794978970.729,1794978970.729,1794978971.267,NULL,NULL,1794978971.279);
INSERT INTO "relet_finished" VALUES('01a1ed15-7c76-746b-a9ba-201613a227ea','succeeded','default','first',0,NULL,NULL,'{"number":2}',NULL,NULL,1,4,0,1,'vm:31674:03a30aeb','5fec1a86-5170-420a-a348-a45ea24bd0f1','01a1ed15-7c76-746b-a9ba-201613a227ea',0,1,NULL,1794978970.742,1794978970.742,1794978971.267,NULL,NULL,1794978971.293);
INSERT INTO "relet_finished" VALUES('01a1ed15-7e8c-7fe0-87c3-30be0c6f59a2','succeeded','default','double',0,NULL,NULL,'{"number":2}','4',NULL,1,4,0,1,'vm:31674:03a30aeb','649a6e1c-7558-4caf-ab35-96e54c6561b5','01a1ed15-7c76-746b-a9ba-201613a227ea',1,0,NULL,1794978971.294,1794978971.294,1794978971.311,NULL,NULL,1794978971.324);
INSERT INTO "relet_finished" VALUES('01a1ed15-7ed0-77e0-94b5-dd8e919f9c2a','cancelled','default','double',0,NULL,NULL,'{"number":3}',NULL,NULL,0,4,0,0,NULL,NULL,'01a1ed15-7ed0-77e0-94b5-dd8e919f9c2a',0,0,NULL,1794978971.346,1794982571.346,NULL,NULL,NULL,1794978971.355);
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
INSERT INTO "relet_jobs" VALUES('01a1ed15-7c78-7839-ba6f-69addbbb4311',6,'failed',NULL,'default','refuse',0,0,'blocked',NULL,1,'{"reason":"card declined"}',1.79497897130585193628e+09,2,2,0,0,2,'{"backoff":[0.01,0.01,2.0,true]}',NULL,NULL,'45e3581d-6503-49d1-88c8-a9fb97eba657',NULL,NULL,NULL,0,NULL,NULL,'ValueError: card declined

Traceback (most recent call last):
  File "/srv/tests/stored/shop.py", line 28, in refuse
    raise ValueError(reason)
ValueError: card declined
','01a1ed15-7c78-7839-ba6f-69addbbb4311',0,0,0,NULL,NULL,1,NULL,0,1794978970.745,1794978971.334,NULL);
INSERT INTO "relet_jobs" VALUES('01a1ed15-7ee0-7b50-812b-d751ddbd4103',8,'pending','time','default','approve',0,0,NULL,NULL,0,'{"amount":7}',2111202972.039,0,4,0,0,1,NULL,NULL,NULL,'42c46e36-92de-42c5-a20c-e9bcf60fc8d4',NULL,NULL,NULL,0,NULL,NULL,NULL,'01a1ed15-7ee0-7b50-812b-d751ddbd4103',0,0,0,'answer',NULL,0,NULL,0,1794978971.36,NULL,NULL);
INSERT INTO "relet_jobs" VALUES('01a1ed15-8198-722d-8e7f-7f200edafc56',9,'running',NULL,'abandoned','die',0,0,NULL,NULL,0,'{"folder":"/tmp/tmpn8xwj9pa"}',1794978972.056,1,4,0,0,1,NULL,NULL,'vm:31780:516e3f9b','b493f81d-bd92-40e8-b7c7-d91041313b31',1794979002.446,NULL,1794978972.446,0,NULL,NULL,NULL,'01a1ed15-8198-722d-8e7f-7f200edafc56',0,0,0,NULL,NULL,0,NULL,0,1794978972.056,NULL,NULL);
INSERT INTO "relet_jobs" VALUES('01a1ed15-8370-78c6-8fa5-06867b611029',10,'queued',NULL,'waiting','double',0,0,NULL,NULL,0,'{"number":0}',1794978972.528,0,4,0,0,0,NULL,NULL,NULL,NULL,NULL,NULL,NULL,0,NULL,NULL,NULL,'01a1ed15-8370-78c6-8fa5-06867b611029',0,0,0,NULL,NULL,0,NULL,0,1794978972.528,NULL,NULL);
INSERT INTO "relet_jobs" VALUES('01a1ed15-8371-73c0-b9b7-5ef47d6285c0',11,'queued',NULL,'waiting','double',1,-1,NULL,NULL,0,'{"number":1}',1794978972.53,0,4,0,0,0,NULL,NULL,NULL,NULL,NULL,NULL,NULL,0,NULL,NULL,NULL,'01a1ed15-8371-73c0-b9b7-5ef47d6285c0',0,0,0,NULL,NULL,0,NULL,0,1794978972.53,NULL,NULL);
INSERT INTO "relet_jobs" VALUES('01a1ed15-8376-7da8-a4ef-1fa99e035971',12,'queued',NULL,'waiting','double',2,-2,NULL,NULL,0,'{"number":2}',1794978972.535,0,4,0,0,0,NULL,NULL,NULL,NULL,NULL,NULL,NULL,0,NULL,NULL,NULL,'01a1ed15-8376-7da8-a4ef-1fa99e035971',0,0,0,NULL,NULL,0,NULL,0,1794978972.535,NULL,NULL);
INSERT INTO "relet_jobs" VALUES('01a1ed15-8381-7981-bba1-b3fa8c2c0bca',13,'pending','time','waiting','double',0,0,NULL,NULL,0,'{"number":10}',1794978973.546,0,4,0,0,0,NULL,NULL,NULL,NULL,NULL,NULL,NULL,0,NULL,NULL,NULL,'01a1ed15-8381-7981-bba1-b3fa8c2c0bca',0,0,0,NULL,NULL,0,NULL,0,1794978972.546,NULL,NULL);
INSERT INTO "relet_jobs" VALUES('01a1ed15-8390-7b84-b38d-a7b255ee6ef7',14,'pending','target','waiting','double',0,0,'blocked',NULL,0,'{"number":11}',1794978972.561,0,4,0,0,0,NULL,NULL,NULL,NULL,NULL,NULL,NULL,0,NULL,NULL,NULL,'01a1ed15-8390-7b84-b38d-a7b255ee6ef7',0,0,0,NULL,NULL,0,NULL,0,1794978972.561,NULL,NULL);
INSERT INTO "relet_jobs" VALUES('01a1ed15-8394-7b68-a77a-d19bd343d5ae',15,'queued',NULL,'waiting','double',0,0,NULL,NULL,0,'{"number":12}',1794978972.564,0,4,0,0,0,NULL,NULL,NULL,NULL,NULL,NULL,NULL,0,NULL,NULL,NULL,'01a1ed15-8394-7b68-a77a-d19bd343d5ae',0,0,0,NULL,NULL,0,'once',0,1794978972.564,NULL,NULL);
INSERT INTO "relet_jobs" VALUES('01a1ed15-839b-780f-84ce-45a2dd295fb6',16,'queued',NULL,'waiting','double',0,0,NULL,NULL,0,'{"number":13}',1794978972.574,0,4,0,0,0,NULL,NULL,NULL,NULL,NULL,NULL,NULL,0,NULL,NULL,NULL,'01a1ed15-839b-780f-84ce-45a2dd295fb6',0,0,0,NULL,NULL,0,'window',1,1794978972.574,NULL,NULL);
INSERT INTO "relet_jobs" VALUES('01a1ed15-83a5-7c88-a0f0-10d5507032c6',17,'pending','jobs','waiting','collect',0,0,NULL,NULL,0,'{}',1794978972.582,0,4,0,0,0,NULL,NULL,NULL,NULL,NULL,NULL,NULL,0,NULL,NULL,NULL,'01a1ed15-83a5-7c88-a0f0-10d5507032c6',0,3,3,NULL,NULL,0,NULL,0,1794978972.582,NULL,NULL);
INSERT INTO "relet_jobs" VALUES('01a1ed15-83b0-7be0-b95c-d869d38b61d4',18,'paused',NULL,'waiting','double',0,0,NULL,NULL,0,'{"number":14}',1794978972.592,0,4,0,0,0,NULL,NULL,NULL,NULL,NULL,NULL,NULL,0,NULL,NULL,NULL,'01a1ed15-83b0-7be0-b95c-d869d38b61d4',0,0,0,NULL,NULL,0,NULL,0,1794978972.592,1794978972.597,NULL);
INSERT INTO "relet_jobs" VALUES('01a1ed15-83bc-7f1e-bb2f-d13492206016',19,'queued',NULL,'paused','double',0,0,NULL,NULL,0,'{"number":15}',1794978972.604,0,4,0,0,0,NULL,NULL,NULL,NULL,NULL,NULL,NULL,0,NULL,NULL,NULL,'01a1ed15-83bc-7f1e-bb2f-d13492206016',0,0,0,NULL,NULL,0,NULL,0,1794978972.604,NULL,NULL);
INSERT INTO "relet_jobs" VALUES('01a1ed15-83c0-7727-b9fe-7045eda10236',20,'queued',NULL,'limited','double',0,0,NULL,'a',0,'{"number":0}',1794978972.608,0,4,0,0,0,NULL,NULL,NULL,NULL,NULL,NULL,NULL,0,NULL,NULL,NULL,'01a1ed15-83c0-7727-b9fe-7045eda10236',0,0,0,NULL,NULL,0,NULL,0,1794978972.608,NULL,NULL);
INSERT INTO "relet_jobs" VALUES('01a1ed15-83c4-758f-a04c-3e9971f4b8c8',21,'queued',NULL,'limited','double',0,0,NULL,'a',0,'{"number":1}',1794978972.612,0,4,0,0,0,NULL,NULL,NULL,NULL,NULL,NULL,NULL,0,NULL,NULL,NULL,'01a1ed15-83c4-758f-a04c-3e9971f4b8c8',0,0,0,NULL,NULL,0,NULL,0,1794978972.612,NULL,NULL);
INSERT INTO "relet_jobs" VALUES('01a1ed15-83cc-7807-aebe-e6042e5d26ba',22,'queued',NULL,'limited','double',0,0,NULL,'b',0,'{"number":2}',1794978972.62,0,4,0,0,0,NULL,NULL,NULL,NULL,NULL,NULL,NULL,0,NULL,NULL,NULL,'01a1ed15-83cc-7807-aebe-e6042e5d26ba',0,0,0,NULL,NULL,0,NULL,0,1794978972.62,NULL,NULL);
CREATE TABLE relet_keys (
    key    text primary key not null,
    job    text not null,
    until  real
);
INSERT INTO "relet_keys" VALUES('once','01a1ed15-8394-7b68-a77a-d19bd343d5ae',NULL);
INSERT INTO "relet_keys" VALUES('window','01a1ed15-839b-780f-84ce-45a2dd295fb6',1794979032.574);
CREATE TABLE relet_migrations (version integer primary key, applied_at real not null, oldest integer, release text);
INSERT INTO "relet_migrations" VALUES(1,1.79497897069698119166e+09,1,'0.1.0');
INSERT INTO "relet_migrations" VALUES(2,1.79497897070398187632e+09,1,'0.1.0');
INSERT INTO "relet_migrations" VALUES(3,1.79497897070498752597e+09,1,'0.1.0');
CREATE TABLE relet_nudges (
    id      integer primary key autoincrement,
    kind    text not null check (kind in ('target', 'job', 'chain', 'signal')),
    key     text not null,
    beyond  text
);
INSERT INTO "relet_nudges" VALUES(6,'target','blocked',NULL);
INSERT INTO "relet_nudges" VALUES(7,'job','01a1ed15-83a5-7c88-a0f0-10d5507032c6',NULL);
CREATE TABLE relet_operations (
    id       text primary key,
    verb     text not null,
    subject  text not null,
    request  text,  
    outcome  text,  
    at       real not null
) without rowid;
INSERT INTO "relet_operations" VALUES('01a1ed15-7c56-7035-9e01-bd6c6beb1c86','limit_queue','limited',NULL,'{}',1794978970.725);
INSERT INTO "relet_operations" VALUES('01a1ed15-7ed6-77bf-9177-d77074f6c451','cancel','01a1ed15-7ed0-77e0-94b5-dd8e919f9c2a',NULL,'{"jobs":[{"id":"01a1ed15-7ed0-77e0-94b5-dd8e919f9c2a","task":"double","queue":"default","state":"cancelled","priority":0,"payload":"null","attempt":0,"max_attempts":4,"losses":0,"version":0,"chain":"01a1ed15-7ed0-77e0-94b5-dd8e919f9c2a","position":0,"created_at":"2026-11-18T05:16:11.346000Z","run_at":"2026-11-18T06:16:11.346000Z","started_at":null,"finished_at":"2026-11-18T05:16:11.355000Z","wait":null,"target":null,"holds":false,"unique":null,"worker":null,"expires_at":null,"request":null,"result":null,"error":null,"continued":false,"progress":null,"group":null,"awaits":null,"context":null,"renewed_at":null,"start_by":null,"tags":[],"rerun_of":null,"existing":false}]}',1794978971.351);
INSERT INTO "relet_operations" VALUES('01a1ed15-83b3-7db4-b5e9-0482fcaa79ca','pause','01a1ed15-83b0-7be0-b95c-d869d38b61d4',NULL,'{"jobs":[{"id":"01a1ed15-83b0-7be0-b95c-d869d38b61d4","task":"double","queue":"waiting","state":"paused","priority":0,"payload":"null","attempt":0,"max_attempts":4,"losses":0,"version":0,"chain":"01a1ed15-83b0-7be0-b95c-d869d38b61d4","position":0,"created_at":"2026-11-18T05:16:12.592000Z","run_at":"2026-11-18T05:16:12.592000Z","started_at":null,"finished_at":"2026-11-18T05:16:12.597000Z","wait":null,"target":null,"holds":false,"unique":null,"worker":null,"expires_at":null,"request":null,"result":null,"error":null,"continued":false,"progress":null,"group":null,"awaits":null,"context":null,"renewed_at":null,"start_by":null,"tags":[],"rerun_of":null,"existing":false}]}',1794978972.595);
INSERT INTO "relet_operations" VALUES('01a1ed15-83ce-7f98-b282-4e1afd578dc0','pause_queue','paused',NULL,'{}',1794978972.623);
CREATE TABLE relet_pulse (
    single       integer primary key check (single = 1),
    touched_at   real not null default 0,
    grace_until  real not null default 0
, tables text);
INSERT INTO "relet_pulse" VALUES(1,1794978972.009,1794978981.169,NULL);
CREATE TABLE relet_quarantine (
    single  integer primary key check (single = 1),
    worker  text,
    until   real not null default 0
);
INSERT INTO "relet_quarantine" VALUES(1,NULL,1794978975.427);
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
INSERT INTO "relet_queue_samples" VALUES('default',1,2,0,0,0,0.500999927520752,1794978971.257);
INSERT INTO "relet_queue_samples" VALUES('limited',0,0,0,0,0,NULL,1794978971.257);
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
INSERT INTO "relet_schedules" VALUES('report','report','{"draft":{"id":"01a1ed15-7dee-7679-8a26-bbb426e5b37a","task":"report","payload":"{}","queue":"default","priority":0,"run_at":null,"delay":null,"target":null,"group":null,"unique":null,"unique_for":null,"replace":false,"depends_on":[],"policy":{"max_attempts":4,"backoff":{"base":0.5,"max":30.0,"factor":2.0,"jitter":true},"lease":null,"timeout":null,"on_expired":"retry","on_failure":"hold","on_dependency_failure":"hold","follow_up":null},"context":null,"fresh":true,"start_by":null,"tags":[],"rerun_of":null},"cron":"0 3 * * *"}','{"draft":{"id":"","task":"report","payload":"{}","queue":"default","priority":0,"run_at":null,"delay":null,"target":null,"group":null,"unique":null,"unique_for":null,"replace":false,"depends_on":[],"policy":{"max_attempts":4,"backoff":{"base":0.5,"max":30.0,"factor":2.0,"jitter":true},"lease":null,"timeout":null,"on_expired":"retry","on_failure":"hold","on_dependency_failure":"hold","follow_up":null},"context":null,"fresh":true,"start_by":null,"tags":[],"rerun_of":null},"cron":"0 3 * * *"}',0,1795057200.0,1794978971.213,1794978971.213);
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
INSERT INTO "relet_stats" VALUES(60,1794978960.0,'','sampled',0,1,1.0);
INSERT INTO "relet_stats" VALUES(60,1794978960.0,'default','gauge.pending',0,1,1.0);
INSERT INTO "relet_stats" VALUES(60,1794978960.0,'default','gauge.queued',0,1,2.0);
INSERT INTO "relet_stats" VALUES(60,1794978960.0,'default','gauge.running',0,1,0.0);
INSERT INTO "relet_stats" VALUES(60,1794978960.0,'default','gauge.paused_jobs',0,1,0.0);
INSERT INTO "relet_stats" VALUES(60,1794978960.0,'default','gauge.failed',0,1,0.0);
INSERT INTO "relet_stats" VALUES(60,1794978960.0,'default','gauge.oldest',0,1,0.500999927520752);
INSERT INTO "relet_stats" VALUES(60,1794978960.0,'limited','gauge.pending',0,1,0.0);
INSERT INTO "relet_stats" VALUES(60,1794978960.0,'limited','gauge.queued',0,1,0.0);
INSERT INTO "relet_stats" VALUES(60,1794978960.0,'limited','gauge.running',0,1,0.0);
INSERT INTO "relet_stats" VALUES(60,1794978960.0,'limited','gauge.paused_jobs',0,1,0.0);
INSERT INTO "relet_stats" VALUES(60,1794978960.0,'limited','gauge.failed',0,1,0.0);
INSERT INTO "relet_stats" VALUES(60,1794978960.0,'limited','gauge.oldest',0,1,0.0);
INSERT INTO "relet_stats" VALUES(-60,1794978960.0,'*','gauge.pending',0,1,1.0);
INSERT INTO "relet_stats" VALUES(-60,1794978960.0,'*','gauge.queued',0,1,2.0);
INSERT INTO "relet_stats" VALUES(-60,1794978960.0,'*','gauge.running',0,1,0.0);
INSERT INTO "relet_stats" VALUES(-60,1794978960.0,'*','gauge.paused_jobs',0,1,0.0);
INSERT INTO "relet_stats" VALUES(-60,1794978960.0,'*','gauge.failed',0,1,0.0);
INSERT INTO "relet_stats" VALUES(-60,1794978960.0,'*','gauge.oldest',0,1,0.500999927520752);
CREATE TABLE relet_steps (
    job      text not null,
    kind     text not null check (kind in ('step', 'sleep', 'wait', 'missed')),
    name     text not null,
    result   text,
    until    real,
    done_at  real not null,
    primary key (job, kind, name)
);
INSERT INTO "relet_steps" VALUES('01a1ed15-7ee0-7b50-812b-d751ddbd4103','step','charge','"charged 7"',NULL,1794978972.03);
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
INSERT INTO "relet_workers" VALUES('vm:31674:03a30aeb','vm',31674,'{"name":"vm:31674:03a30aeb","host":"vm","pid":31674,"queues":["default"],"slots":10,"tasks":["approve","collect","die","double","first","refuse","report"],"lease":30.0,"version":"0.1.0"}',0,0,'39abc8a1-12bc-4796-a4ff-30f1541d2112',1794978971.175,1794978971.175);
INSERT INTO "relet_workers" VALUES('vm:31740:a40552a6','vm',31740,'{"name":"vm:31740:a40552a6","host":"vm","pid":31740,"queues":["default"],"slots":10,"tasks":["approve","collect","die","double","first","refuse","report"],"lease":30.0,"version":"0.1.0"}',0,0,'b4de775d-39aa-433c-bb55-d3d8e6a633eb',1794978972.012,1794978972.012);
INSERT INTO "relet_workers" VALUES('vm:31780:516e3f9b','vm',31780,'{"name":"vm:31780:516e3f9b","host":"vm","pid":31780,"queues":["abandoned"],"slots":10,"tasks":["approve","collect","die","double","first","refuse","report"],"lease":30.0,"version":"0.1.0"}',0,0,'6ba737c2-6f84-4ceb-9b0f-69991e7142dc',1794978972.426,1794978972.426);
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
CREATE VIEW relet_live_jobs as
    select state, wait, losses, token, holds, waits, expires_at, request, awaits, policy, progress, error,
           null as result, 0 as continued, stopped_at as finished_at, id, chain, created_at, run_at, attempt, max_attempts, version, position, priority, queue, task, payload, started_at, renewed_at, worker, target, group_key, unique_key, context, start_by,
           (select json_group_array(tag) from (
               select t.tag from relet_tags t where t.job = j.id order by t.tag)) as tags,
           (select r.rerun_of from relet_reruns r where r.job = j.id) as rerun_of
    from relet_jobs j;
CREATE VIEW relet_over_jobs as
    select state, null as wait, losses, token, 0 as holds, 0 as waits, null as expires_at, null as request,
           null as awaits, null as policy, null as progress, error, result, continued, finished_at, id, chain, created_at, run_at, attempt, max_attempts, version, position, priority, queue, task, payload, started_at, renewed_at, worker, target, group_key, unique_key, context,
           null as start_by,
           (select json_group_array(tag) from (
               select t.tag from relet_tags t where t.job = f.id order by t.tag)) as tags,
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
