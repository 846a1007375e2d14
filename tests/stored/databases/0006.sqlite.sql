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
INSERT INTO "relet_attempts" VALUES('01a1efe8-d8f5-7778-bc97-8d4048a2d60d',1,1,'vm:1761:a0b9755d',1795026377.533,1795026377.549,NULL,1795026382.533,'retried','ValueError: card declined

Traceback (most recent call last):
  File "/srv/tests/stored/shop.py", line 28, in refuse
    raise ValueError(reason)
ValueError: card declined
','builtins.ValueError');
INSERT INTO "relet_attempts" VALUES('01a1efe8-d8f5-7778-bc97-8d4048a2d60d',2,2,'vm:1761:a0b9755d',1795026377.564,1795026377.565,NULL,1795026382.564,'failed','ValueError: card declined

Traceback (most recent call last):
  File "/srv/tests/stored/shop.py", line 28, in refuse
    raise ValueError(reason)
ValueError: card declined
','builtins.ValueError');
INSERT INTO "relet_attempts" VALUES('01a1efe8-db86-75af-bd8e-cad5685204a9',1,1,'vm:1780:54bb0a44',1795026378.286,1795026378.295,NULL,1795026383.286,'snoozed',NULL,NULL);
CREATE TABLE relet_audit (
    seq      integer primary key autoincrement,
    id       text not null unique,  
    at       real not null,
    who      text not null,
    what     text not null,
    subject  text not null,
    detail   text
);
INSERT INTO "relet_audit" VALUES(1,'01a1efe8-db81-7120-ac3a-18ce24b2d77f',1795026377.605,'ada','cancel','01a1efe8-db7d-777a-abec-6b9bb94522c4',NULL);
INSERT INTO "relet_audit" VALUES(2,'01a1efe8-e227-7a0e-ac0a-796eca05c275',1795026379.303,'ada','pause_queue','paused',NULL);
CREATE TABLE relet_dependencies (
    job         text not null,
    depends_on  text not null,  
    position    integer not null,
    state       text check (state in ('succeeded', 'failed', 'cancelled', 'deleted')),
    result      text,
    task        text,  
    primary key (job, depends_on)
);
INSERT INTO "relet_dependencies" VALUES('01a1efe8-e210-7e32-ac2c-737842769511','01a1efe8-e1f4-7265-86d3-e44177748006',0,NULL,NULL,NULL);
INSERT INTO "relet_dependencies" VALUES('01a1efe8-e210-7e32-ac2c-737842769511','01a1efe8-e1f6-76a8-b719-d81e7ad0a28b',1,NULL,NULL,NULL);
INSERT INTO "relet_dependencies" VALUES('01a1efe8-e210-7e32-ac2c-737842769511','01a1efe8-e1f7-7026-aa97-1763ff1846d6',2,NULL,NULL,NULL);
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
INSERT INTO "relet_finished" VALUES('01a1efe8-d8ef-7188-bb47-121b25c8e676','succeeded','default','double',0,NULL,NULL,'{"number":1}','2',NULL,1,4,0,1,'vm:1761:a0b9755d','e77f5c1b-c82d-43db-a160-c8c1b1729247','01a1efe8-d8ef-7188-bb47-121b25c8e676',0,0,NULL,1795026376.943,1795026376.943,1795026377.533,NULL,NULL,1795026377.539,NULL);
INSERT INTO "relet_finished" VALUES('01a1efe8-d8f0-7381-9ed5-0e8a27792a38','succeeded','default','first',0,NULL,NULL,'{"number":2}',NULL,NULL,1,4,0,1,'vm:1761:a0b9755d','e77f5c1b-c82d-43db-a160-c8c1b1729247','01a1efe8-d8f0-7381-9ed5-0e8a27792a38',0,1,NULL,1795026376.944,1795026376.944,1795026377.533,NULL,NULL,1795026377.542,NULL);
INSERT INTO "relet_finished" VALUES('01a1efe8-db40-70af-a3c1-4a7f322528ea','succeeded','default','double',0,NULL,NULL,'{"number":2}','4',NULL,1,4,0,1,'vm:1761:a0b9755d','7dbcbbdc-a8c5-4aec-b0b8-11def54ab69d','01a1efe8-d8f0-7381-9ed5-0e8a27792a38',1,0,NULL,1795026377.544,1795026377.544,1795026377.547,NULL,NULL,1795026377.552,NULL);
INSERT INTO "relet_finished" VALUES('01a1efe8-db7d-777a-abec-6b9bb94522c4','cancelled','default','double',0,NULL,NULL,'{"number":3}',NULL,NULL,0,4,0,0,NULL,NULL,'01a1efe8-db7d-777a-abec-6b9bb94522c4',0,0,NULL,1795026377.599,1795029977.599,NULL,NULL,NULL,1795026377.603,NULL);
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
INSERT INTO "relet_jobs" VALUES('01a1efe8-d8f5-7778-bc97-8d4048a2d60d',6,'failed',NULL,'default','refuse',0,0,'blocked',NULL,1,'{"reason":"card declined"}',1.79502637755704951287e+09,2,2,0,0,2,'{"backoff":[0.01,0.01,2.0,true]}',NULL,NULL,'d7caaf86-2406-4a80-8a89-e69e1ca1df97',NULL,NULL,NULL,0,NULL,NULL,'ValueError: card declined

Traceback (most recent call last):
  File "/srv/tests/stored/shop.py", line 28, in refuse
    raise ValueError(reason)
ValueError: card declined
','01a1efe8-d8f5-7778-bc97-8d4048a2d60d',0,0,0,NULL,NULL,1,NULL,0,1795026376.953,1795026377.565,NULL);
INSERT INTO "relet_jobs" VALUES('01a1efe8-db86-75af-bd8e-cad5685204a9',8,'pending','time','default','approve',0,0,NULL,NULL,0,'{"amount":7}',2111250378.298,0,4,0,0,1,NULL,NULL,NULL,'6c028a58-f3b4-4749-bea4-8caae38c625b',NULL,NULL,NULL,0,NULL,NULL,NULL,'01a1efe8-db86-75af-bd8e-cad5685204a9',0,0,0,'answer',NULL,0,NULL,0,1795026377.606,NULL,NULL);
INSERT INTO "relet_jobs" VALUES('01a1efe8-de52-74dc-acd3-430c49d2b960',9,'running',NULL,'abandoned','die',0,0,NULL,NULL,0,'{"folder":"/tmp/tmpfcz99suh"}',1795026378.322,1,4,0,0,1,NULL,NULL,'vm:1814:df99e3a1','bd9e4cda-0e20-47ef-873a-625c087dda57',1795026384.237,NULL,1795026379.237,0,NULL,NULL,NULL,'01a1efe8-de52-74dc-acd3-430c49d2b960',0,0,0,NULL,NULL,0,NULL,0,1795026378.322,NULL,NULL);
INSERT INTO "relet_jobs" VALUES('01a1efe8-e1f4-7265-86d3-e44177748006',10,'queued',NULL,'waiting','double',0,0,NULL,NULL,0,'{"number":0}',1795026379.253,0,4,0,0,0,NULL,NULL,NULL,NULL,NULL,NULL,NULL,0,NULL,NULL,NULL,'01a1efe8-e1f4-7265-86d3-e44177748006',0,0,0,NULL,NULL,0,NULL,0,1795026379.253,NULL,NULL);
INSERT INTO "relet_jobs" VALUES('01a1efe8-e1f6-76a8-b719-d81e7ad0a28b',11,'queued',NULL,'waiting','double',1,-1,NULL,NULL,0,'{"number":1}',1795026379.254,0,4,0,0,0,NULL,NULL,NULL,NULL,NULL,NULL,NULL,0,NULL,NULL,NULL,'01a1efe8-e1f6-76a8-b719-d81e7ad0a28b',0,0,0,NULL,NULL,0,NULL,0,1795026379.254,NULL,NULL);
INSERT INTO "relet_jobs" VALUES('01a1efe8-e1f7-7026-aa97-1763ff1846d6',12,'queued',NULL,'waiting','double',2,-2,NULL,NULL,0,'{"number":2}',1795026379.255,0,4,0,0,0,NULL,NULL,NULL,NULL,NULL,NULL,NULL,0,NULL,NULL,NULL,'01a1efe8-e1f7-7026-aa97-1763ff1846d6',0,0,0,NULL,NULL,0,NULL,0,1795026379.255,NULL,NULL);
INSERT INTO "relet_jobs" VALUES('01a1efe8-e1fe-759d-8461-c26b693051ad',13,'pending','time','waiting','double',0,0,NULL,NULL,0,'{"number":10}',1795026380.263,0,4,0,0,0,NULL,NULL,NULL,NULL,NULL,NULL,NULL,0,NULL,NULL,NULL,'01a1efe8-e1fe-759d-8461-c26b693051ad',0,0,0,NULL,NULL,0,NULL,0,1795026379.263,NULL,NULL);
INSERT INTO "relet_jobs" VALUES('01a1efe8-e201-7430-b508-b229353ce2ce',14,'pending','target','waiting','double',0,0,'blocked',NULL,0,'{"number":11}',1795026379.265,0,4,0,0,0,NULL,NULL,NULL,NULL,NULL,NULL,NULL,0,NULL,NULL,NULL,'01a1efe8-e201-7430-b508-b229353ce2ce',0,0,0,NULL,NULL,0,NULL,0,1795026379.265,NULL,NULL);
INSERT INTO "relet_jobs" VALUES('01a1efe8-e203-7bef-ae32-a456df56b06f',15,'queued',NULL,'waiting','double',0,0,NULL,NULL,0,'{"number":12}',1795026379.273,0,4,0,0,0,NULL,NULL,NULL,NULL,NULL,NULL,NULL,0,NULL,NULL,NULL,'01a1efe8-e203-7bef-ae32-a456df56b06f',0,0,0,NULL,NULL,0,'once',0,1795026379.273,NULL,NULL);
INSERT INTO "relet_jobs" VALUES('01a1efe8-e20b-7608-ba5f-c8514e1753d6',16,'queued',NULL,'waiting','double',0,0,NULL,NULL,0,'{"number":13}',1795026379.277,0,4,0,0,0,NULL,NULL,NULL,NULL,NULL,NULL,NULL,0,NULL,NULL,NULL,'01a1efe8-e20b-7608-ba5f-c8514e1753d6',0,0,0,NULL,NULL,0,'window',1,1795026379.277,NULL,NULL);
INSERT INTO "relet_jobs" VALUES('01a1efe8-e210-7e32-ac2c-737842769511',17,'pending','jobs','waiting','collect',0,0,NULL,NULL,0,'{}',1795026379.281,0,4,0,0,0,NULL,NULL,NULL,NULL,NULL,NULL,NULL,0,NULL,NULL,NULL,'01a1efe8-e210-7e32-ac2c-737842769511',0,3,3,NULL,NULL,0,NULL,0,1795026379.281,NULL,NULL);
INSERT INTO "relet_jobs" VALUES('01a1efe8-e215-758c-854c-b4a23bbd4d75',18,'paused',NULL,'waiting','double',0,0,NULL,NULL,0,'{"number":14}',1795026379.285,0,4,0,0,0,NULL,NULL,NULL,NULL,NULL,NULL,NULL,0,NULL,NULL,NULL,'01a1efe8-e215-758c-854c-b4a23bbd4d75',0,0,0,NULL,NULL,0,NULL,0,1795026379.285,1795026379.291,NULL);
INSERT INTO "relet_jobs" VALUES('01a1efe8-e21f-7b23-89a7-82f036866cc5',19,'queued',NULL,'paused','double',0,0,NULL,NULL,0,'{"number":15}',1795026379.296,0,4,0,0,0,NULL,NULL,NULL,NULL,NULL,NULL,NULL,0,NULL,NULL,NULL,'01a1efe8-e21f-7b23-89a7-82f036866cc5',0,0,0,NULL,NULL,0,NULL,0,1795026379.296,NULL,NULL);
INSERT INTO "relet_jobs" VALUES('01a1efe8-e220-79c4-8737-98e180a88a78',20,'queued',NULL,'limited','double',0,0,NULL,'a',0,'{"number":0}',1795026379.297,0,4,0,0,0,NULL,NULL,NULL,NULL,NULL,NULL,NULL,0,NULL,NULL,NULL,'01a1efe8-e220-79c4-8737-98e180a88a78',0,0,0,NULL,NULL,0,NULL,0,1795026379.297,NULL,NULL);
INSERT INTO "relet_jobs" VALUES('01a1efe8-e224-7097-9e40-9eeb8c055c99',21,'queued',NULL,'limited','double',0,0,NULL,'a',0,'{"number":1}',1795026379.301,0,4,0,0,0,NULL,NULL,NULL,NULL,NULL,NULL,NULL,0,NULL,NULL,NULL,'01a1efe8-e224-7097-9e40-9eeb8c055c99',0,0,0,NULL,NULL,0,NULL,0,1795026379.301,NULL,NULL);
INSERT INTO "relet_jobs" VALUES('01a1efe8-e226-7378-be20-9ad1716b8c04',22,'queued',NULL,'limited','double',0,0,NULL,'b',0,'{"number":2}',1795026379.302,0,4,0,0,0,NULL,NULL,NULL,NULL,NULL,NULL,NULL,0,NULL,NULL,NULL,'01a1efe8-e226-7378-be20-9ad1716b8c04',0,0,0,NULL,NULL,0,NULL,0,1795026379.302,NULL,NULL);
CREATE TABLE relet_keys (
    key    text primary key not null,
    job    text not null,
    until  real
);
INSERT INTO "relet_keys" VALUES('once','01a1efe8-e203-7bef-ae32-a456df56b06f',NULL);
INSERT INTO "relet_keys" VALUES('window','01a1efe8-e20b-7608-ba5f-c8514e1753d6',1795026439.276);
CREATE TABLE relet_migrations (version integer primary key, applied_at real not null, oldest integer, release text);
INSERT INTO "relet_migrations" VALUES(1,1.79502637689001846312e+09,1,'0.1.0');
INSERT INTO "relet_migrations" VALUES(2,1.79502637689500761037e+09,1,'0.1.0');
INSERT INTO "relet_migrations" VALUES(3,1.79502637689899063105e+09,1,'0.1.0');
INSERT INTO "relet_migrations" VALUES(4,1.79502637691001439099e+09,1,'0.1.0');
INSERT INTO "relet_migrations" VALUES(5,1.79502637691198587421e+09,1,'0.1.0');
INSERT INTO "relet_migrations" VALUES(6,1.79502637691500329967e+09,1,'0.1.0');
CREATE TABLE relet_nudges (
    id      integer primary key autoincrement,
    kind    text not null check (kind in ('target', 'job', 'chain', 'signal')),
    key     text not null,
    beyond  text
);
INSERT INTO "relet_nudges" VALUES(6,'target','blocked',NULL);
INSERT INTO "relet_nudges" VALUES(7,'job','01a1efe8-e210-7e32-ac2c-737842769511',NULL);
CREATE TABLE relet_operations (
    id       text primary key,
    verb     text not null,
    subject  text not null,
    request  text,  
    outcome  text,  
    at       real not null
) without rowid;
INSERT INTO "relet_operations" VALUES('01a1efe8-d8d6-7558-bd31-a9a6702f6185','limit_queue','limited',NULL,'{}',1795026376.937);
INSERT INTO "relet_operations" VALUES('01a1efe8-db81-75da-9848-3c9cdc40b02a','cancel','01a1efe8-db7d-777a-abec-6b9bb94522c4',NULL,'{"jobs":[{"id":"01a1efe8-db7d-777a-abec-6b9bb94522c4","task":"double","queue":"default","state":"cancelled","priority":0,"payload":"null","attempt":0,"max_attempts":4,"losses":0,"version":0,"chain":"01a1efe8-db7d-777a-abec-6b9bb94522c4","position":0,"created_at":"2026-11-18T18:26:17.599000Z","run_at":"2026-11-18T19:26:17.599000Z","started_at":null,"finished_at":"2026-11-18T18:26:17.603000Z","wait":null,"target":null,"holds":false,"unique":null,"worker":null,"expires_at":null,"request":null,"result":null,"error":null,"continued":false,"progress":null,"group":null,"awaits":null,"context":null,"renewed_at":null,"start_by":null,"tags":[],"rerun_of":null,"error_type":null,"existing":false}]}',1795026377.601);
INSERT INTO "relet_operations" VALUES('01a1efe8-e218-759c-84d3-66558b93d59e','pause','01a1efe8-e215-758c-854c-b4a23bbd4d75',NULL,'{"jobs":[{"id":"01a1efe8-e215-758c-854c-b4a23bbd4d75","task":"double","queue":"waiting","state":"paused","priority":0,"payload":"null","attempt":0,"max_attempts":4,"losses":0,"version":0,"chain":"01a1efe8-e215-758c-854c-b4a23bbd4d75","position":0,"created_at":"2026-11-18T18:26:19.285000Z","run_at":"2026-11-18T18:26:19.285000Z","started_at":null,"finished_at":"2026-11-18T18:26:19.291000Z","wait":null,"target":null,"holds":false,"unique":null,"worker":null,"expires_at":null,"request":null,"result":null,"error":null,"continued":false,"progress":null,"group":null,"awaits":null,"context":null,"renewed_at":null,"start_by":null,"tags":[],"rerun_of":null,"error_type":null,"existing":false}]}',1795026379.288);
INSERT INTO "relet_operations" VALUES('01a1efe8-e227-7bc3-91a0-22a33b06e20e','pause_queue','paused',NULL,'{}',1795026379.303);
CREATE TABLE relet_pulse (
    single       integer primary key check (single = 1),
    touched_at   real not null default 0,
    grace_until  real not null default 0
, tables text, period_from real not null default 0, uptime real not null default 0, reap_before real not null default 0);
INSERT INTO "relet_pulse" VALUES(1,1795026379.203,1.79502637918066668513e+09,NULL,0.0,1.68873551669821608811e+00,0.0);
CREATE TABLE relet_quarantine (
    single  integer primary key check (single = 1),
    worker  text,
    until   real not null default 0
);
INSERT INTO "relet_quarantine" VALUES(1,NULL,1795026382.215);
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
INSERT INTO "relet_queue_samples" VALUES('default',0,3,0,0,0,5.83999872207641601562e-01,1795026377.531);
INSERT INTO "relet_queue_samples" VALUES('limited',0,0,0,0,0,NULL,1795026377.531);
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
INSERT INTO "relet_schedules" VALUES('report','report','{"draft":{"id":"01a1efe8-daea-79fe-9c71-fb30aa94a6e7","task":"report","payload":"{}","queue":"default","priority":0,"run_at":null,"delay":null,"target":null,"group":null,"unique":null,"unique_for":null,"replace":false,"depends_on":[],"policy":{"max_attempts":4,"backoff":{"base":0.5,"max":30.0,"factor":2.0,"jitter":true},"lease":null,"timeout":null,"on_expired":"retry","on_failure":"hold","on_dependency_failure":"hold","follow_up":null},"context":null,"fresh":true,"start_by":null,"tags":[],"rerun_of":null},"cron":"0 3 * * *"}','{"draft":{"id":"","task":"report","payload":"{}","queue":"default","priority":0,"run_at":null,"delay":null,"target":null,"group":null,"unique":null,"unique_for":null,"replace":false,"depends_on":[],"policy":{"max_attempts":4,"backoff":{"base":0.5,"max":30.0,"factor":2.0,"jitter":true},"lease":null,"timeout":null,"on_expired":"retry","on_failure":"hold","on_dependency_failure":"hold","follow_up":null},"context":null,"fresh":true,"start_by":null,"tags":[],"rerun_of":null},"cron":"0 3 * * *"}',0,1795057200.0,1795026377.518,1795026377.518);
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
INSERT INTO "relet_stats" VALUES(60,1795026360.0,'','sampled',0,1,1.0);
INSERT INTO "relet_stats" VALUES(60,1795026360.0,'default','gauge.pending',0,1,0.0);
INSERT INTO "relet_stats" VALUES(60,1795026360.0,'default','gauge.queued',0,1,3.0);
INSERT INTO "relet_stats" VALUES(60,1795026360.0,'default','gauge.running',0,1,0.0);
INSERT INTO "relet_stats" VALUES(60,1795026360.0,'default','gauge.paused_jobs',0,1,0.0);
INSERT INTO "relet_stats" VALUES(60,1795026360.0,'default','gauge.failed',0,1,0.0);
INSERT INTO "relet_stats" VALUES(60,1795026360.0,'default','gauge.oldest',0,1,5.83999872207641601562e-01);
INSERT INTO "relet_stats" VALUES(60,1795026360.0,'limited','gauge.pending',0,1,0.0);
INSERT INTO "relet_stats" VALUES(60,1795026360.0,'limited','gauge.queued',0,1,0.0);
INSERT INTO "relet_stats" VALUES(60,1795026360.0,'limited','gauge.running',0,1,0.0);
INSERT INTO "relet_stats" VALUES(60,1795026360.0,'limited','gauge.paused_jobs',0,1,0.0);
INSERT INTO "relet_stats" VALUES(60,1795026360.0,'limited','gauge.failed',0,1,0.0);
INSERT INTO "relet_stats" VALUES(60,1795026360.0,'limited','gauge.oldest',0,1,0.0);
INSERT INTO "relet_stats" VALUES(-60,1795026360.0,'*','gauge.pending',0,1,0.0);
INSERT INTO "relet_stats" VALUES(-60,1795026360.0,'*','gauge.queued',0,1,3.0);
INSERT INTO "relet_stats" VALUES(-60,1795026360.0,'*','gauge.running',0,1,0.0);
INSERT INTO "relet_stats" VALUES(-60,1795026360.0,'*','gauge.paused_jobs',0,1,0.0);
INSERT INTO "relet_stats" VALUES(-60,1795026360.0,'*','gauge.failed',0,1,0.0);
INSERT INTO "relet_stats" VALUES(-60,1795026360.0,'*','gauge.oldest',0,1,5.83999872207641601562e-01);
CREATE TABLE relet_steps (
    job      text not null,
    kind     text not null check (kind in ('step', 'sleep', 'wait', 'missed')),
    name     text not null,
    result   text,
    until    real,
    done_at  real not null, started_at real, input text,
    primary key (job, kind, name)
);
INSERT INTO "relet_steps" VALUES('01a1efe8-db86-75af-bd8e-cad5685204a9','step','charge','"charged 7"',NULL,1795026378.289,1.7950263782887823582e+09,'{"amount":7}');
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
INSERT INTO "relet_workers" VALUES('vm:1761:a0b9755d','vm',1761,'{"name":"vm:1761:a0b9755d","host":"vm","pid":1761,"queues":["default"],"slots":10,"tasks":["approve","collect","die","double","first","refuse","report"],"lease":5.0,"version":"0.1.0"}',0,0,'f10c74da-0d2f-4cbf-a20b-c10d34902ac0',1795026377.516,1795026377.516);
INSERT INTO "relet_workers" VALUES('vm:1780:54bb0a44','vm',1780,'{"name":"vm:1780:54bb0a44","host":"vm","pid":1780,"queues":["default"],"slots":10,"tasks":["approve","collect","die","double","first","refuse","report"],"lease":5.0,"version":"0.1.0"}',0,0,'38070bbd-1f72-4e0e-af6a-7530e59e5b0c',1795026378.277,1795026378.277);
INSERT INTO "relet_workers" VALUES('vm:1814:df99e3a1','vm',1814,'{"name":"vm:1814:df99e3a1","host":"vm","pid":1814,"queues":["abandoned"],"slots":10,"tasks":["approve","collect","die","double","first","refuse","report"],"lease":5.0,"version":"0.1.0"}',0,0,'70e60ace-cba1-44b9-bbcc-b33647949aea',1795026379.214,1795026379.214);
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
