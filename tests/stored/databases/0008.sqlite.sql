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
INSERT INTO "relet_attempts" VALUES('01a1f267-807e-72e6-94e2-6bd2d5febc34',1,1,'vm:23284:7cd01072',1795068237.075,1795068237.357,NULL,1795068242.075,'retried','ValueError: card declined

Traceback (most recent call last):
  File "/srv/tests/stored/shop.py", line 28, in refuse
    raise ValueError(reason)
ValueError: card declined
','builtins.ValueError');
INSERT INTO "relet_attempts" VALUES('01a1f267-807e-72e6-94e2-6bd2d5febc34',2,2,'vm:23284:7cd01072',1795068237.479,1795068237.514,NULL,1795068242.479,'failed','ValueError: card declined

Traceback (most recent call last):
  File "/srv/tests/stored/shop.py", line 28, in refuse
    raise ValueError(reason)
ValueError: card declined
','builtins.ValueError');
INSERT INTO "relet_attempts" VALUES('01a1f267-9787-7078-8b93-e5fcf35edd87',1,1,'vm:23539:7cfa38fa',1795068241.399,1795068241.443,NULL,1795068246.399,'snoozed',NULL,NULL);
CREATE TABLE relet_audit (
    seq      integer primary key autoincrement,
    id       text not null unique,  
    at       real not null,
    who      text not null,
    what     text not null,
    subject  text not null,
    detail   text
);
INSERT INTO "relet_audit" VALUES(1,'01a1f267-9756-7f88-9061-a4e034f087fc',1795068237.656,'ada','cancel','01a1f267-9718-7fda-812a-361907a52d5e',NULL);
INSERT INTO "relet_audit" VALUES(2,'01a1f267-b29a-7183-b93e-d0ee596ee47c',1795068244.634,'ada','pause_queue','paused',NULL);
CREATE TABLE relet_dependencies (
    job         text not null,
    depends_on  text not null,  
    position    integer not null,
    state       text check (state in ('succeeded', 'failed', 'cancelled', 'deleted')),
    result      text,
    task        text,  
    primary key (job, depends_on)
);
INSERT INTO "relet_dependencies" VALUES('01a1f267-b27c-79c9-aeb4-acf78b106f6a','01a1f267-b257-7129-9511-23fe3006ce55',0,NULL,NULL,NULL);
INSERT INTO "relet_dependencies" VALUES('01a1f267-b27c-79c9-aeb4-acf78b106f6a','01a1f267-b261-753d-87a3-d22046fcc9d6',1,NULL,NULL,NULL);
INSERT INTO "relet_dependencies" VALUES('01a1f267-b27c-79c9-aeb4-acf78b106f6a','01a1f267-b263-7637-a9b0-5661d7a0bf9e',2,NULL,NULL,NULL);
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
INSERT INTO "relet_finished" VALUES('01a1f267-8056-76d4-9e60-983e55bf7a91','succeeded','default','double',0,NULL,NULL,'{"number":1}','2',NULL,1,4,0,1,'vm:23284:7cd01072','24fe9ba5-6809-4724-b159-a27d155ac7d7','01a1f267-8056-76d4-9e60-983e55bf7a91',0,0,NULL,1795068231.767,1795068231.767,1795068237.075,NULL,NULL,1795068237.15,NULL);
INSERT INTO "relet_finished" VALUES('01a1f267-8071-7fcc-8c3c-ede81ffd542e','succeeded','default','first',0,NULL,NULL,'{"number":2}',NULL,NULL,1,4,0,1,'vm:23284:7cd01072','24fe9ba5-6809-4724-b159-a27d155ac7d7','01a1f267-8071-7fcc-8c3c-ede81ffd542e',0,1,NULL,1795068231.793,1795068231.793,1795068237.075,NULL,NULL,1795068237.211,NULL);
INSERT INTO "relet_finished" VALUES('01a1f267-9553-7070-a117-f08a7f08c580','succeeded','default','double',0,NULL,NULL,'{"number":2}','4',NULL,1,4,0,1,'vm:23284:7cd01072','4bdc24c2-015a-43b4-9c17-d58915a0225b','01a1f267-8071-7fcc-8c3c-ede81ffd542e',1,0,NULL,1795068237.212,1795068237.212,1795068237.353,NULL,NULL,1795068237.433,NULL);
INSERT INTO "relet_finished" VALUES('01a1f267-9718-7fda-812a-361907a52d5e','cancelled','default','double',0,NULL,NULL,'{"number":3}',NULL,NULL,0,4,0,0,NULL,NULL,'01a1f267-9718-7fda-812a-361907a52d5e',0,0,NULL,1795068237.593,1795071837.593,NULL,NULL,NULL,1795068237.655,NULL);
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
INSERT INTO "relet_jobs" VALUES('01a1f267-807e-72e6-94e2-6bd2d5febc34',6,'failed',NULL,'default','refuse',0,0,'blocked',NULL,1,'{"reason":"card declined"}',1.79506823736401605606e+09,2,2,0,0,2,'{"backoff":[0.01,0.01,2.0,true]}',NULL,NULL,'977533d6-e50d-4d5d-94e8-4bf015f7da60',NULL,NULL,NULL,0,NULL,NULL,'ValueError: card declined

Traceback (most recent call last):
  File "/srv/tests/stored/shop.py", line 28, in refuse
    raise ValueError(reason)
ValueError: card declined
','01a1f267-807e-72e6-94e2-6bd2d5febc34',0,0,0,NULL,NULL,1,NULL,0,1795068231.807,1795068237.514,NULL);
INSERT INTO "relet_jobs" VALUES('01a1f267-9787-7078-8b93-e5fcf35edd87',8,'pending','time','default','approve',0,0,NULL,NULL,0,'{"amount":7}',2111292241.443,0,4,0,0,1,NULL,NULL,NULL,'c186c41e-d4bf-400e-9d84-878adb02643d',NULL,NULL,NULL,0,NULL,NULL,NULL,'01a1f267-9787-7078-8b93-e5fcf35edd87',0,0,0,'answer',NULL,0,NULL,0,1795068237.704,NULL,NULL);
INSERT INTO "relet_jobs" VALUES('01a1f267-a65d-7ab0-93c4-bc7677ee54ad',9,'running',NULL,'abandoned','die',0,0,NULL,NULL,0,'{"folder":"/tmp/tmpwu72jjet"}',1795068241.501,1,4,0,0,1,NULL,NULL,'vm:23762:7e3e2c29','dfe24801-a3aa-4c55-a48d-e565768f1a32',1795068249.542,NULL,1795068244.542,0,NULL,NULL,NULL,'01a1f267-a65d-7ab0-93c4-bc7677ee54ad',0,0,0,NULL,NULL,0,NULL,0,1795068241.501,NULL,NULL);
INSERT INTO "relet_jobs" VALUES('01a1f267-b257-7129-9511-23fe3006ce55',10,'queued',NULL,'waiting','double',0,0,NULL,NULL,0,'{"number":0}',1795068244.567,0,4,0,0,0,NULL,NULL,NULL,NULL,NULL,NULL,NULL,0,NULL,NULL,NULL,'01a1f267-b257-7129-9511-23fe3006ce55',0,0,0,NULL,NULL,0,NULL,0,1795068244.567,NULL,NULL);
INSERT INTO "relet_jobs" VALUES('01a1f267-b261-753d-87a3-d22046fcc9d6',11,'queued',NULL,'waiting','double',1,-1,NULL,NULL,0,'{"number":1}',1795068244.577,0,4,0,0,0,NULL,NULL,NULL,NULL,NULL,NULL,NULL,0,NULL,NULL,NULL,'01a1f267-b261-753d-87a3-d22046fcc9d6',0,0,0,NULL,NULL,0,NULL,0,1795068244.577,NULL,NULL);
INSERT INTO "relet_jobs" VALUES('01a1f267-b263-7637-a9b0-5661d7a0bf9e',12,'queued',NULL,'waiting','double',2,-2,NULL,NULL,0,'{"number":2}',1795068244.579,0,4,0,0,0,NULL,NULL,NULL,NULL,NULL,NULL,NULL,0,NULL,NULL,NULL,'01a1f267-b263-7637-a9b0-5661d7a0bf9e',0,0,0,NULL,NULL,0,NULL,0,1795068244.579,NULL,NULL);
INSERT INTO "relet_jobs" VALUES('01a1f267-b265-7ff1-8bed-4bba65f0672a',13,'pending','time','waiting','double',0,0,NULL,NULL,0,'{"number":10}',1795068245.581,0,4,0,0,0,NULL,NULL,NULL,NULL,NULL,NULL,NULL,0,NULL,NULL,NULL,'01a1f267-b265-7ff1-8bed-4bba65f0672a',0,0,0,NULL,NULL,0,NULL,0,1795068244.581,NULL,NULL);
INSERT INTO "relet_jobs" VALUES('01a1f267-b268-7a49-9853-13ce2ccfa570',14,'pending','target','waiting','double',0,0,'blocked',NULL,0,'{"number":11}',1795068244.584,0,4,0,0,0,NULL,NULL,NULL,NULL,NULL,NULL,NULL,0,NULL,NULL,NULL,'01a1f267-b268-7a49-9853-13ce2ccfa570',0,0,0,NULL,NULL,0,NULL,0,1795068244.584,NULL,NULL);
INSERT INTO "relet_jobs" VALUES('01a1f267-b26b-79d2-9bcf-ea3bcbb5e03c',15,'queued',NULL,'waiting','double',0,0,NULL,NULL,0,'{"number":12}',1795068244.588,0,4,0,0,0,NULL,NULL,NULL,NULL,NULL,NULL,NULL,0,NULL,NULL,NULL,'01a1f267-b26b-79d2-9bcf-ea3bcbb5e03c',0,0,0,NULL,NULL,0,'once',0,1795068244.588,NULL,NULL);
INSERT INTO "relet_jobs" VALUES('01a1f267-b275-797f-b55b-ff85b593ff63',16,'queued',NULL,'waiting','double',0,0,NULL,NULL,0,'{"number":13}',1795068244.598,0,4,0,0,0,NULL,NULL,NULL,NULL,NULL,NULL,NULL,0,NULL,NULL,NULL,'01a1f267-b275-797f-b55b-ff85b593ff63',0,0,0,NULL,NULL,0,'window',1,1795068244.598,NULL,NULL);
INSERT INTO "relet_jobs" VALUES('01a1f267-b27c-79c9-aeb4-acf78b106f6a',17,'pending','jobs','waiting','collect',0,0,NULL,NULL,0,'{}',1795068244.605,0,4,0,0,0,NULL,NULL,NULL,NULL,NULL,NULL,NULL,0,NULL,NULL,NULL,'01a1f267-b27c-79c9-aeb4-acf78b106f6a',0,3,3,NULL,NULL,0,NULL,0,1795068244.605,NULL,NULL);
INSERT INTO "relet_jobs" VALUES('01a1f267-b27f-721d-8bd4-b2a1a05750da',18,'paused',NULL,'waiting','double',0,0,NULL,NULL,0,'{"number":14}',1795068244.607,0,4,0,0,0,NULL,NULL,NULL,NULL,NULL,NULL,NULL,0,NULL,NULL,NULL,'01a1f267-b27f-721d-8bd4-b2a1a05750da',0,0,0,NULL,NULL,0,NULL,0,1795068244.607,1795068244.623,NULL);
INSERT INTO "relet_jobs" VALUES('01a1f267-b292-704f-8b94-72a8191c4ae5',19,'queued',NULL,'paused','double',0,0,NULL,NULL,0,'{"number":15}',1795068244.627,0,4,0,0,0,NULL,NULL,NULL,NULL,NULL,NULL,NULL,0,NULL,NULL,NULL,'01a1f267-b292-704f-8b94-72a8191c4ae5',0,0,0,NULL,NULL,0,NULL,0,1795068244.627,NULL,NULL);
INSERT INTO "relet_jobs" VALUES('01a1f267-b295-7510-ac4f-e6a67fcf6093',20,'queued',NULL,'limited','double',0,0,NULL,'a',0,'{"number":0}',1795068244.629,0,4,0,0,0,NULL,NULL,NULL,NULL,NULL,NULL,NULL,0,NULL,NULL,NULL,'01a1f267-b295-7510-ac4f-e6a67fcf6093',0,0,0,NULL,NULL,0,NULL,0,1795068244.629,NULL,NULL);
INSERT INTO "relet_jobs" VALUES('01a1f267-b298-7844-bb8b-16145650e130',21,'queued',NULL,'limited','double',0,0,NULL,'a',0,'{"number":1}',1795068244.632,0,4,0,0,0,NULL,NULL,NULL,NULL,NULL,NULL,NULL,0,NULL,NULL,NULL,'01a1f267-b298-7844-bb8b-16145650e130',0,0,0,NULL,NULL,0,NULL,0,1795068244.632,NULL,NULL);
INSERT INTO "relet_jobs" VALUES('01a1f267-b299-7607-9942-6858595b0e0f',22,'queued',NULL,'limited','double',0,0,NULL,'b',0,'{"number":2}',1795068244.633,0,4,0,0,0,NULL,NULL,NULL,NULL,NULL,NULL,NULL,0,NULL,NULL,NULL,'01a1f267-b299-7607-9942-6858595b0e0f',0,0,0,NULL,NULL,0,NULL,0,1795068244.633,NULL,NULL);
CREATE TABLE relet_keys (
    key    text primary key not null,
    job    text not null,
    until  real
);
INSERT INTO "relet_keys" VALUES('once','01a1f267-b26b-79d2-9bcf-ea3bcbb5e03c',NULL);
INSERT INTO "relet_keys" VALUES('window','01a1f267-b275-797f-b55b-ff85b593ff63',1795068304.597);
CREATE TABLE relet_migrations (version integer primary key, applied_at real not null, oldest integer, release text);
INSERT INTO "relet_migrations" VALUES(1,1.795068231556981802e+09,1,'0.1.0');
INSERT INTO "relet_migrations" VALUES(2,1.79506823159001326559e+09,1,'0.1.0');
INSERT INTO "relet_migrations" VALUES(3,1.79506823159101915358e+09,1,'0.1.0');
INSERT INTO "relet_migrations" VALUES(4,1.79506823161101484293e+09,1,'0.1.0');
INSERT INTO "relet_migrations" VALUES(5,1.79506823161198043829e+09,1,'0.1.0');
INSERT INTO "relet_migrations" VALUES(6,1.79506823161298632624e+09,1,'0.1.0');
INSERT INTO "relet_migrations" VALUES(7,1.79506823161298632624e+09,1,'0.1.0');
INSERT INTO "relet_migrations" VALUES(8,1.79506823161298632624e+09,1,'0.1.0');
CREATE TABLE relet_nudges (
    id      integer primary key autoincrement,
    kind    text not null check (kind in ('target', 'job', 'chain', 'signal')),
    key     text not null,
    beyond  text
);
INSERT INTO "relet_nudges" VALUES(6,'target','blocked',NULL);
INSERT INTO "relet_nudges" VALUES(7,'job','01a1f267-b27c-79c9-aeb4-acf78b106f6a',NULL);
CREATE TABLE relet_operations (
    id       text primary key,
    verb     text not null,
    subject  text not null,
    request  text,  
    outcome  text,  
    at       real not null
) without rowid;
INSERT INTO "relet_operations" VALUES('01a1f267-802e-77d2-8f5d-ac9994e103a1','limit_queue','limited',NULL,'{}',1795068231.748);
INSERT INTO "relet_operations" VALUES('01a1f267-9756-7b18-b506-abd5911310da','cancel','01a1f267-9718-7fda-812a-361907a52d5e',NULL,'{"jobs":[{"id":"01a1f267-9718-7fda-812a-361907a52d5e","task":"double","queue":"default","state":"cancelled","priority":0,"payload":"null","attempt":0,"max_attempts":4,"losses":0,"version":0,"chain":"01a1f267-9718-7fda-812a-361907a52d5e","position":0,"created_at":"2026-11-19T06:03:57.593000Z","run_at":"2026-11-19T07:03:57.593000Z","started_at":null,"finished_at":"2026-11-19T06:03:57.655000Z","wait":null,"target":null,"holds":false,"unique":null,"worker":null,"expires_at":null,"request":null,"result":null,"error":null,"continued":false,"progress":null,"group":null,"awaits":null,"context":null,"renewed_at":null,"start_by":null,"tags":[],"rerun_of":null,"error_type":null,"existing":false}]}',1795068237.654);
INSERT INTO "relet_operations" VALUES('01a1f267-b280-70bb-9bdf-05631deb03e6','pause','01a1f267-b27f-721d-8bd4-b2a1a05750da',NULL,'{"jobs":[{"id":"01a1f267-b27f-721d-8bd4-b2a1a05750da","task":"double","queue":"waiting","state":"paused","priority":0,"payload":"null","attempt":0,"max_attempts":4,"losses":0,"version":0,"chain":"01a1f267-b27f-721d-8bd4-b2a1a05750da","position":0,"created_at":"2026-11-19T06:04:04.607000Z","run_at":"2026-11-19T06:04:04.607000Z","started_at":null,"finished_at":"2026-11-19T06:04:04.623000Z","wait":null,"target":null,"holds":false,"unique":null,"worker":null,"expires_at":null,"request":null,"result":null,"error":null,"continued":false,"progress":null,"group":null,"awaits":null,"context":null,"renewed_at":null,"start_by":null,"tags":[],"rerun_of":null,"error_type":null,"existing":false}]}',1795068244.608);
INSERT INTO "relet_operations" VALUES('01a1f267-b29a-7e68-ab88-2dd3d71ece31','pause_queue','paused',NULL,'{}',1795068244.634);
CREATE TABLE relet_pulse (
    single       integer primary key check (single = 1),
    touched_at   real not null default 0,
    grace_until  real not null default 0
, tables text, period_from real not null default 0, uptime real not null default 0, reap_before real not null default 0);
INSERT INTO "relet_pulse" VALUES(1,1795068244.495,0.0,NULL,0.0,0.0,0.0);
CREATE TABLE relet_quarantine (
    single  integer primary key check (single = 1),
    worker  text,
    until   real not null default 0
);
INSERT INTO "relet_quarantine" VALUES(1,NULL,1795068247.511);
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
INSERT INTO "relet_queue_samples" VALUES('default',0,1,0,0,1,3.69400000572204589843e+00,1795068241.413);
INSERT INTO "relet_queue_samples" VALUES('limited',0,0,0,0,0,NULL,1795068241.413);
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
INSERT INTO "relet_schedules" VALUES('report','report','{"draft":{"id":"01a1f267-92dd-7f4c-bfb2-05cf07ff5df4","task":"report","payload":"{}","queue":"default","priority":0,"run_at":null,"delay":null,"target":null,"group":null,"unique":null,"unique_for":null,"replace":false,"depends_on":[],"policy":{"max_attempts":4,"backoff":{"base":0.5,"max":30.0,"factor":2.0,"jitter":true},"lease":null,"timeout":null,"on_expired":"retry","on_failure":"hold","on_dependency_failure":"hold","follow_up":null},"context":null,"fresh":true,"start_by":null,"tags":[],"rerun_of":null},"cron":"0 3 * * *"}','{"draft":{"id":"","task":"report","payload":"{}","queue":"default","priority":0,"run_at":null,"delay":null,"target":null,"group":null,"unique":null,"unique_for":null,"replace":false,"depends_on":[],"policy":{"max_attempts":4,"backoff":{"base":0.5,"max":30.0,"factor":2.0,"jitter":true},"lease":null,"timeout":null,"on_expired":"retry","on_failure":"hold","on_dependency_failure":"hold","follow_up":null},"context":null,"fresh":true,"start_by":null,"tags":[],"rerun_of":null},"cron":"0 3 * * *"}',0,1795143600.0,1795068236.924,1795068236.924);
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
INSERT INTO "relet_stats" VALUES(60,1795068180.0,'','sampled',0,1,1.0);
INSERT INTO "relet_stats" VALUES(60,1795068180.0,'default','gauge.pending',0,1,1.0);
INSERT INTO "relet_stats" VALUES(60,1795068180.0,'default','gauge.queued',0,1,2.0);
INSERT INTO "relet_stats" VALUES(60,1795068180.0,'default','gauge.running',0,1,0.0);
INSERT INTO "relet_stats" VALUES(60,1795068180.0,'default','gauge.paused_jobs',0,1,0.0);
INSERT INTO "relet_stats" VALUES(60,1795068180.0,'default','gauge.failed',0,1,0.0);
INSERT INTO "relet_stats" VALUES(60,1795068180.0,'default','gauge.oldest',0,1,5.21799993515014648437e+00);
INSERT INTO "relet_stats" VALUES(60,1795068180.0,'limited','gauge.pending',0,1,0.0);
INSERT INTO "relet_stats" VALUES(60,1795068180.0,'limited','gauge.queued',0,1,0.0);
INSERT INTO "relet_stats" VALUES(60,1795068180.0,'limited','gauge.running',0,1,0.0);
INSERT INTO "relet_stats" VALUES(60,1795068180.0,'limited','gauge.paused_jobs',0,1,0.0);
INSERT INTO "relet_stats" VALUES(60,1795068180.0,'limited','gauge.failed',0,1,0.0);
INSERT INTO "relet_stats" VALUES(60,1795068180.0,'limited','gauge.oldest',0,1,0.0);
INSERT INTO "relet_stats" VALUES(-60,1795068180.0,'*','gauge.pending',0,1,1.0);
INSERT INTO "relet_stats" VALUES(-60,1795068180.0,'*','gauge.queued',0,1,2.0);
INSERT INTO "relet_stats" VALUES(-60,1795068180.0,'*','gauge.running',0,1,0.0);
INSERT INTO "relet_stats" VALUES(-60,1795068180.0,'*','gauge.paused_jobs',0,1,0.0);
INSERT INTO "relet_stats" VALUES(-60,1795068180.0,'*','gauge.failed',0,1,0.0);
INSERT INTO "relet_stats" VALUES(-60,1795068180.0,'*','gauge.oldest',0,1,5.21799993515014648437e+00);
INSERT INTO "relet_stats" VALUES(60,1795068240.0,'','sampled',0,1,1.0);
INSERT INTO "relet_stats" VALUES(60,1795068240.0,'default','gauge.pending',0,1,0.0);
INSERT INTO "relet_stats" VALUES(60,1795068240.0,'default','gauge.queued',0,1,1.0);
INSERT INTO "relet_stats" VALUES(60,1795068240.0,'default','gauge.running',0,1,0.0);
INSERT INTO "relet_stats" VALUES(60,1795068240.0,'default','gauge.paused_jobs',0,1,0.0);
INSERT INTO "relet_stats" VALUES(60,1795068240.0,'default','gauge.failed',0,1,1.0);
INSERT INTO "relet_stats" VALUES(60,1795068240.0,'default','gauge.oldest',0,1,3.69400000572204589843e+00);
INSERT INTO "relet_stats" VALUES(60,1795068240.0,'limited','gauge.pending',0,1,0.0);
INSERT INTO "relet_stats" VALUES(60,1795068240.0,'limited','gauge.queued',0,1,0.0);
INSERT INTO "relet_stats" VALUES(60,1795068240.0,'limited','gauge.running',0,1,0.0);
INSERT INTO "relet_stats" VALUES(60,1795068240.0,'limited','gauge.paused_jobs',0,1,0.0);
INSERT INTO "relet_stats" VALUES(60,1795068240.0,'limited','gauge.failed',0,1,0.0);
INSERT INTO "relet_stats" VALUES(60,1795068240.0,'limited','gauge.oldest',0,1,0.0);
INSERT INTO "relet_stats" VALUES(-60,1795068240.0,'*','gauge.pending',0,1,0.0);
INSERT INTO "relet_stats" VALUES(-60,1795068240.0,'*','gauge.queued',0,1,1.0);
INSERT INTO "relet_stats" VALUES(-60,1795068240.0,'*','gauge.running',0,1,0.0);
INSERT INTO "relet_stats" VALUES(-60,1795068240.0,'*','gauge.paused_jobs',0,1,0.0);
INSERT INTO "relet_stats" VALUES(-60,1795068240.0,'*','gauge.failed',0,1,1.0);
INSERT INTO "relet_stats" VALUES(-60,1795068240.0,'*','gauge.oldest',0,1,3.69400000572204589843e+00);
CREATE TABLE relet_steps (
    job      text not null,
    kind     text not null check (kind in ('step', 'sleep', 'wait', 'missed')),
    name     text not null,
    result   text,
    until    real,
    done_at  real not null, started_at real, input text,
    primary key (job, kind, name)
);
INSERT INTO "relet_steps" VALUES('01a1f267-9787-7078-8b93-e5fcf35edd87','step','charge','"charged 7"',NULL,1795068241.432,1.79506824143172788619e+09,'{"amount":7}');
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
INSERT INTO "relet_workers" VALUES('vm:23284:7cd01072','vm',23284,'{"name":"vm:23284:7cd01072","host":"vm","pid":23284,"queues":["default"],"slots":10,"tasks":["approve","collect","die","double","first","refuse","report"],"lease":5.0,"version":"0.1.0"}',0,0,'407efcf7-c93b-46b7-8eea-9215b8123397',1795068236.923,1795068236.923);
INSERT INTO "relet_workers" VALUES('vm:23539:7cfa38fa','vm',23539,'{"name":"vm:23539:7cfa38fa","host":"vm","pid":23539,"queues":["default"],"slots":10,"tasks":["approve","collect","die","double","first","refuse","report"],"lease":5.0,"version":"0.1.0"}',0,0,'b4f1c46b-0db1-4b1d-b69d-5e0ceb7af494',1795068241.334,1795068241.334);
INSERT INTO "relet_workers" VALUES('vm:23762:7e3e2c29','vm',23762,'{"name":"vm:23762:7e3e2c29","host":"vm","pid":23762,"queues":["abandoned"],"slots":10,"tasks":["approve","collect","die","double","first","refuse","report"],"lease":5.0,"version":"0.1.0"}',0,0,'b4fc425c-935b-47a0-ae2f-ef6a582583cc',1795068244.501,1795068244.501);
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
CREATE INDEX relet_operations_subject on relet_operations (subject);
CREATE INDEX relet_audit_subject on relet_audit (subject);
CREATE INDEX relet_dependencies_copies on relet_dependencies (depends_on) where result is not null;
DELETE FROM "sqlite_sequence";
INSERT INTO "sqlite_sequence" VALUES('relet_nudges',7);
INSERT INTO "sqlite_sequence" VALUES('relet_audit',2);
COMMIT;
