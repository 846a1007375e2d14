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
INSERT INTO "relet_attempts" VALUES('01a1ecc5-1d6a-7f31-a910-3f8cdd251583',1,1,'vm:7935:ebdff88a',1794973703.778,1794973703.802,NULL,1794973733.778,'retried','ValueError: card declined

Traceback (most recent call last):
  File "/srv/tests/stored/shop.py", line 28, in refuse
    raise ValueError(reason)
ValueError: card declined
');
INSERT INTO "relet_attempts" VALUES('01a1ecc5-1d6a-7f31-a910-3f8cdd251583',2,2,'vm:7935:ebdff88a',1794973703.812,1794973703.813,NULL,1794973733.812,'failed','ValueError: card declined

Traceback (most recent call last):
  File "/srv/tests/stored/shop.py", line 28, in refuse
    raise ValueError(reason)
ValueError: card declined
');
INSERT INTO "relet_attempts" VALUES('01a1ecc5-1e97-77dc-9a46-a7007eefa7a7',1,1,'vm:7950:493803a5',1794973704.039,1794973704.046,NULL,1794973734.039,'snoozed',NULL);
CREATE TABLE relet_audit (
    seq      integer primary key autoincrement,
    id       text not null unique,  
    at       real not null,
    who      text not null,
    what     text not null,
    subject  text not null,
    detail   text
);
INSERT INTO "relet_audit" VALUES(1,'01a1ecc5-1e94-7e74-a119-3238c524b442',1794973703.83,'ada','cancel','01a1ecc5-1e91-7b2a-9a76-9c1d80ed8511',NULL);
INSERT INTO "relet_audit" VALUES(2,'01a1ecc5-20a1-7e3a-81d8-786d2cc35205',1794973704.353,'ada','pause_queue','paused',NULL);
CREATE TABLE relet_dependencies (
    job         text not null,
    depends_on  text not null,  
    position    integer not null,
    state       text check (state in ('succeeded', 'failed', 'cancelled', 'deleted')),
    result      text,
    task        text,  
    primary key (job, depends_on)
);
INSERT INTO "relet_dependencies" VALUES('01a1ecc5-2098-7d28-946f-72b651f89f35','01a1ecc5-208f-77ee-bd1f-e51573157a99',0,NULL,NULL,NULL);
INSERT INTO "relet_dependencies" VALUES('01a1ecc5-2098-7d28-946f-72b651f89f35','01a1ecc5-2090-77de-bc06-01884b56e940',1,NULL,NULL,NULL);
INSERT INTO "relet_dependencies" VALUES('01a1ecc5-2098-7d28-946f-72b651f89f35','01a1ecc5-2091-7317-a6e8-b20d6969b2fc',2,NULL,NULL,NULL);
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
INSERT INTO "relet_finished" VALUES('01a1ecc5-1d67-7ef5-b1e4-948aede0a4bc','succeeded','default','double',0,NULL,NULL,'{"number":1}','2',NULL,1,4,0,1,'vm:7935:ebdff88a','569f0cea-b55c-4fd0-8f29-07ba76f768d6','01a1ecc5-1d67-7ef5-b1e4-948aede0a4bc',0,0,NULL,1794973703.528,1794973703.528,1794973703.778,NULL,NULL,1794973703.786);
INSERT INTO "relet_finished" VALUES('01a1ecc5-1d69-73a1-b22a-3d8b963ec029','succeeded','default','first',0,NULL,NULL,'{"number":2}',NULL,NULL,1,4,0,1,'vm:7935:ebdff88a','569f0cea-b55c-4fd0-8f29-07ba76f768d6','01a1ecc5-1d69-73a1-b22a-3d8b963ec029',0,1,NULL,1794973703.529,1794973703.529,1794973703.778,NULL,NULL,1794973703.791);
INSERT INTO "relet_finished" VALUES('01a1ecc5-1e65-7c68-b84a-a800f710dd41','succeeded','default','double',0,NULL,NULL,'{"number":2}','4',NULL,1,4,0,1,'vm:7935:ebdff88a','8a622f6b-4543-4a0c-afd3-9cba989ebb9b','01a1ecc5-1d69-73a1-b22a-3d8b963ec029',1,0,NULL,1794973703.793,1794973703.793,1794973703.796,NULL,NULL,1794973703.804);
INSERT INTO "relet_finished" VALUES('01a1ecc5-1e91-7b2a-9a76-9c1d80ed8511','cancelled','default','double',0,NULL,NULL,'{"number":3}',NULL,NULL,0,4,0,0,NULL,NULL,'01a1ecc5-1e91-7b2a-9a76-9c1d80ed8511',0,0,NULL,1794973703.827,1794977303.827,NULL,NULL,NULL,1794973703.829);
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
INSERT INTO "relet_jobs" VALUES('01a1ecc5-1d6a-7f31-a910-3f8cdd251583',6,'failed',NULL,'default','refuse',0,0,'blocked',NULL,1,'{"reason":"card declined"}',1.79497370380971097945e+09,2,2,0,0,2,'{"backoff":[0.01,0.01,2.0,true]}',NULL,NULL,'92b94b2e-ebd3-4bcc-b9c8-f71f1593d350',NULL,NULL,NULL,0,NULL,NULL,'ValueError: card declined

Traceback (most recent call last):
  File "/srv/tests/stored/shop.py", line 28, in refuse
    raise ValueError(reason)
ValueError: card declined
','01a1ecc5-1d6a-7f31-a910-3f8cdd251583',0,0,0,NULL,NULL,1,NULL,0,1794973703.531,1794973703.814,NULL);
INSERT INTO "relet_jobs" VALUES('01a1ecc5-1e97-77dc-9a46-a7007eefa7a7',8,'pending','time','default','approve',0,0,NULL,NULL,0,'{"amount":7}',2111197704.047,0,4,0,0,1,NULL,NULL,NULL,'ae39de6a-34f3-448e-8241-84c1390f5cf4',NULL,NULL,NULL,0,NULL,NULL,NULL,'01a1ecc5-1e97-77dc-9a46-a7007eefa7a7',0,0,0,'answer',NULL,0,NULL,0,1794973703.831,NULL,NULL);
INSERT INTO "relet_jobs" VALUES('01a1ecc5-1f80-73b0-bce2-0d4cb91cda4d',9,'running',NULL,'abandoned','die',0,0,NULL,NULL,0,'{"folder":"/tmp/tmpj7nsaeot"}',1794973704.065,1,4,0,0,1,NULL,NULL,'vm:7963:11ba462a','13dabcfb-de37-4a7f-a99d-d690f0755e9f',1794973734.327,NULL,1794973704.327,0,NULL,NULL,NULL,'01a1ecc5-1f80-73b0-bce2-0d4cb91cda4d',0,0,0,NULL,NULL,0,NULL,0,1794973704.065,NULL,NULL);
INSERT INTO "relet_jobs" VALUES('01a1ecc5-208f-77ee-bd1f-e51573157a99',10,'queued',NULL,'waiting','double',0,0,NULL,NULL,0,'{"number":0}',1794973704.335,0,4,0,0,0,NULL,NULL,NULL,NULL,NULL,NULL,NULL,0,NULL,NULL,NULL,'01a1ecc5-208f-77ee-bd1f-e51573157a99',0,0,0,NULL,NULL,0,NULL,0,1794973704.335,NULL,NULL);
INSERT INTO "relet_jobs" VALUES('01a1ecc5-2090-77de-bc06-01884b56e940',11,'queued',NULL,'waiting','double',1,-1,NULL,NULL,0,'{"number":1}',1794973704.336,0,4,0,0,0,NULL,NULL,NULL,NULL,NULL,NULL,NULL,0,NULL,NULL,NULL,'01a1ecc5-2090-77de-bc06-01884b56e940',0,0,0,NULL,NULL,0,NULL,0,1794973704.336,NULL,NULL);
INSERT INTO "relet_jobs" VALUES('01a1ecc5-2091-7317-a6e8-b20d6969b2fc',12,'queued',NULL,'waiting','double',2,-2,NULL,NULL,0,'{"number":2}',1794973704.337,0,4,0,0,0,NULL,NULL,NULL,NULL,NULL,NULL,NULL,0,NULL,NULL,NULL,'01a1ecc5-2091-7317-a6e8-b20d6969b2fc',0,0,0,NULL,NULL,0,NULL,0,1794973704.337,NULL,NULL);
INSERT INTO "relet_jobs" VALUES('01a1ecc5-2092-7f4b-b8a5-7debd6a28d27',13,'pending','time','waiting','double',0,0,NULL,NULL,0,'{"number":10}',1794973705.338,0,4,0,0,0,NULL,NULL,NULL,NULL,NULL,NULL,NULL,0,NULL,NULL,NULL,'01a1ecc5-2092-7f4b-b8a5-7debd6a28d27',0,0,0,NULL,NULL,0,NULL,0,1794973704.338,NULL,NULL);
INSERT INTO "relet_jobs" VALUES('01a1ecc5-2093-78cc-bdec-66af0adb8c93',14,'pending','target','waiting','double',0,0,'blocked',NULL,0,'{"number":11}',1794973704.339,0,4,0,0,0,NULL,NULL,NULL,NULL,NULL,NULL,NULL,0,NULL,NULL,NULL,'01a1ecc5-2093-78cc-bdec-66af0adb8c93',0,0,0,NULL,NULL,0,NULL,0,1794973704.339,NULL,NULL);
INSERT INTO "relet_jobs" VALUES('01a1ecc5-2094-7c67-9ada-7cb9a005f820',15,'queued',NULL,'waiting','double',0,0,NULL,NULL,0,'{"number":12}',1794973704.341,0,4,0,0,0,NULL,NULL,NULL,NULL,NULL,NULL,NULL,0,NULL,NULL,NULL,'01a1ecc5-2094-7c67-9ada-7cb9a005f820',0,0,0,NULL,NULL,0,'once',0,1794973704.341,NULL,NULL);
INSERT INTO "relet_jobs" VALUES('01a1ecc5-2096-75d5-9ea9-9e7840624e43',16,'queued',NULL,'waiting','double',0,0,NULL,NULL,0,'{"number":13}',1794973704.343,0,4,0,0,0,NULL,NULL,NULL,NULL,NULL,NULL,NULL,0,NULL,NULL,NULL,'01a1ecc5-2096-75d5-9ea9-9e7840624e43',0,0,0,NULL,NULL,0,'window',1,1794973704.343,NULL,NULL);
INSERT INTO "relet_jobs" VALUES('01a1ecc5-2098-7d28-946f-72b651f89f35',17,'pending','jobs','waiting','collect',0,0,NULL,NULL,0,'{}',1794973704.344,0,4,0,0,0,NULL,NULL,NULL,NULL,NULL,NULL,NULL,0,NULL,NULL,NULL,'01a1ecc5-2098-7d28-946f-72b651f89f35',0,3,3,NULL,NULL,0,NULL,0,1794973704.344,NULL,NULL);
INSERT INTO "relet_jobs" VALUES('01a1ecc5-209a-78f8-b357-470431a0eb96',18,'paused',NULL,'waiting','double',0,0,NULL,NULL,0,'{"number":14}',1794973704.346,0,4,0,0,0,NULL,NULL,NULL,NULL,NULL,NULL,NULL,0,NULL,NULL,NULL,'01a1ecc5-209a-78f8-b357-470431a0eb96',0,0,0,NULL,NULL,0,NULL,0,1794973704.346,1794973704.348,NULL);
INSERT INTO "relet_jobs" VALUES('01a1ecc5-209d-7133-80bf-95537ea0e208',19,'queued',NULL,'paused','double',0,0,NULL,NULL,0,'{"number":15}',1794973704.349,0,4,0,0,0,NULL,NULL,NULL,NULL,NULL,NULL,NULL,0,NULL,NULL,NULL,'01a1ecc5-209d-7133-80bf-95537ea0e208',0,0,0,NULL,NULL,0,NULL,0,1794973704.349,NULL,NULL);
INSERT INTO "relet_jobs" VALUES('01a1ecc5-209e-736c-8f8b-28154d663ff7',20,'queued',NULL,'limited','double',0,0,NULL,'a',0,'{"number":0}',1794973704.35,0,4,0,0,0,NULL,NULL,NULL,NULL,NULL,NULL,NULL,0,NULL,NULL,NULL,'01a1ecc5-209e-736c-8f8b-28154d663ff7',0,0,0,NULL,NULL,0,NULL,0,1794973704.35,NULL,NULL);
INSERT INTO "relet_jobs" VALUES('01a1ecc5-209f-7355-9000-86e00b5b8d32',21,'queued',NULL,'limited','double',0,0,NULL,'a',0,'{"number":1}',1794973704.351,0,4,0,0,0,NULL,NULL,NULL,NULL,NULL,NULL,NULL,0,NULL,NULL,NULL,'01a1ecc5-209f-7355-9000-86e00b5b8d32',0,0,0,NULL,NULL,0,NULL,0,1794973704.351,NULL,NULL);
INSERT INTO "relet_jobs" VALUES('01a1ecc5-20a0-7545-b569-0f13f638c8ba',22,'queued',NULL,'limited','double',0,0,NULL,'b',0,'{"number":2}',1794973704.352,0,4,0,0,0,NULL,NULL,NULL,NULL,NULL,NULL,NULL,0,NULL,NULL,NULL,'01a1ecc5-20a0-7545-b569-0f13f638c8ba',0,0,0,NULL,NULL,0,NULL,0,1794973704.352,NULL,NULL);
CREATE TABLE relet_keys (
    key    text primary key not null,
    job    text not null,
    until  real
);
INSERT INTO "relet_keys" VALUES('once','01a1ecc5-2094-7c67-9ada-7cb9a005f820',NULL);
INSERT INTO "relet_keys" VALUES('window','01a1ecc5-2096-75d5-9ea9-9e7840624e43',1794973764.342);
CREATE TABLE relet_migrations (version integer primary key, applied_at real not null, oldest integer, release text);
INSERT INTO "relet_migrations" VALUES(1,1.7949737035109863281e+09,1,'0.1.0');
INSERT INTO "relet_migrations" VALUES(2,1.79497370351299786574e+09,1,'0.1.0');
CREATE TABLE relet_nudges (
    id      integer primary key autoincrement,
    kind    text not null check (kind in ('target', 'job', 'chain', 'signal')),
    key     text not null,
    beyond  text
);
INSERT INTO "relet_nudges" VALUES(6,'target','blocked',NULL);
INSERT INTO "relet_nudges" VALUES(7,'job','01a1ecc5-2098-7d28-946f-72b651f89f35',NULL);
CREATE TABLE relet_operations (
    id       text primary key,
    verb     text not null,
    subject  text not null,
    request  text,  
    outcome  text,  
    at       real not null
) without rowid;
INSERT INTO "relet_operations" VALUES('01a1ecc5-1d5b-7f13-bfec-670c7998f112','limit_queue','limited',NULL,'{}',1794973703.524);
INSERT INTO "relet_operations" VALUES('01a1ecc5-1e94-7159-a9a8-35f350232f5a','cancel','01a1ecc5-1e91-7b2a-9a76-9c1d80ed8511',NULL,'{"jobs":[{"id":"01a1ecc5-1e91-7b2a-9a76-9c1d80ed8511","task":"double","queue":"default","state":"cancelled","priority":0,"payload":"null","attempt":0,"max_attempts":4,"losses":0,"version":0,"chain":"01a1ecc5-1e91-7b2a-9a76-9c1d80ed8511","position":0,"created_at":"2026-11-18T03:48:23.827000Z","run_at":"2026-11-18T04:48:23.827000Z","started_at":null,"finished_at":"2026-11-18T03:48:23.829000Z","wait":null,"target":null,"holds":false,"unique":null,"worker":null,"expires_at":null,"request":null,"result":null,"error":null,"continued":false,"progress":null,"group":null,"awaits":null,"context":null,"renewed_at":null,"start_by":null,"tags":[],"rerun_of":null,"existing":false}]}',1794973703.828);
INSERT INTO "relet_operations" VALUES('01a1ecc5-209a-74c5-b403-6cec25ae22d5','pause','01a1ecc5-209a-78f8-b357-470431a0eb96',NULL,'{"jobs":[{"id":"01a1ecc5-209a-78f8-b357-470431a0eb96","task":"double","queue":"waiting","state":"paused","priority":0,"payload":"null","attempt":0,"max_attempts":4,"losses":0,"version":0,"chain":"01a1ecc5-209a-78f8-b357-470431a0eb96","position":0,"created_at":"2026-11-18T03:48:24.346000Z","run_at":"2026-11-18T03:48:24.346000Z","started_at":null,"finished_at":"2026-11-18T03:48:24.348000Z","wait":null,"target":null,"holds":false,"unique":null,"worker":null,"expires_at":null,"request":null,"result":null,"error":null,"continued":false,"progress":null,"group":null,"awaits":null,"context":null,"renewed_at":null,"start_by":null,"tags":[],"rerun_of":null,"existing":false}]}',1794973704.347);
INSERT INTO "relet_operations" VALUES('01a1ecc5-20a1-7163-b6bc-bb88be01b62f','pause_queue','paused',NULL,'{}',1794973704.353);
CREATE TABLE relet_pulse (
    single       integer primary key check (single = 1),
    touched_at   real not null default 0,
    grace_until  real not null default 0
);
INSERT INTO "relet_pulse" VALUES(1,1794973703.757,1794973713.757);
CREATE TABLE relet_quarantine (
    single  integer primary key check (single = 1),
    worker  text,
    until   real not null default 0
);
INSERT INTO "relet_quarantine" VALUES(1,NULL,1794973707.321);
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
INSERT INTO "relet_queue_samples" VALUES('default',1,2,0,0,0,2.38999843597412109375e-01,1794973703.771);
INSERT INTO "relet_queue_samples" VALUES('limited',0,0,0,0,0,NULL,1794973703.771);
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
INSERT INTO "relet_schedules" VALUES('report','report','{"draft":{"id":"01a1ecc5-1e27-7151-8978-b48369ceff53","task":"report","payload":"{}","queue":"default","priority":0,"run_at":null,"delay":null,"target":null,"group":null,"unique":null,"unique_for":null,"replace":false,"depends_on":[],"policy":{"max_attempts":4,"backoff":{"base":0.5,"max":30.0,"factor":2.0,"jitter":true},"lease":null,"timeout":null,"on_expired":"retry","on_failure":"hold","on_dependency_failure":"hold","follow_up":null},"context":null,"fresh":true,"start_by":null,"tags":[],"rerun_of":null},"cron":"0 3 * * *"}','{"draft":{"id":"","task":"report","payload":"{}","queue":"default","priority":0,"run_at":null,"delay":null,"target":null,"group":null,"unique":null,"unique_for":null,"replace":false,"depends_on":[],"policy":{"max_attempts":4,"backoff":{"base":0.5,"max":30.0,"factor":2.0,"jitter":true},"lease":null,"timeout":null,"on_expired":"retry","on_failure":"hold","on_dependency_failure":"hold","follow_up":null},"context":null,"fresh":true,"start_by":null,"tags":[],"rerun_of":null},"cron":"0 3 * * *"}',0,1795057200.0,1794973703.761,1794973703.761);
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
INSERT INTO "relet_stats" VALUES(60,1794973680.0,'','sampled',0,1,1.0);
INSERT INTO "relet_stats" VALUES(60,1794973680.0,'default','gauge.pending',0,1,1.0);
INSERT INTO "relet_stats" VALUES(60,1794973680.0,'default','gauge.queued',0,1,2.0);
INSERT INTO "relet_stats" VALUES(60,1794973680.0,'default','gauge.running',0,1,0.0);
INSERT INTO "relet_stats" VALUES(60,1794973680.0,'default','gauge.paused_jobs',0,1,0.0);
INSERT INTO "relet_stats" VALUES(60,1794973680.0,'default','gauge.failed',0,1,0.0);
INSERT INTO "relet_stats" VALUES(60,1794973680.0,'default','gauge.oldest',0,1,2.38999843597412109375e-01);
INSERT INTO "relet_stats" VALUES(60,1794973680.0,'limited','gauge.pending',0,1,0.0);
INSERT INTO "relet_stats" VALUES(60,1794973680.0,'limited','gauge.queued',0,1,0.0);
INSERT INTO "relet_stats" VALUES(60,1794973680.0,'limited','gauge.running',0,1,0.0);
INSERT INTO "relet_stats" VALUES(60,1794973680.0,'limited','gauge.paused_jobs',0,1,0.0);
INSERT INTO "relet_stats" VALUES(60,1794973680.0,'limited','gauge.failed',0,1,0.0);
INSERT INTO "relet_stats" VALUES(60,1794973680.0,'limited','gauge.oldest',0,1,0.0);
INSERT INTO "relet_stats" VALUES(-60,1794973680.0,'*','gauge.pending',0,1,1.0);
INSERT INTO "relet_stats" VALUES(-60,1794973680.0,'*','gauge.queued',0,1,2.0);
INSERT INTO "relet_stats" VALUES(-60,1794973680.0,'*','gauge.running',0,1,0.0);
INSERT INTO "relet_stats" VALUES(-60,1794973680.0,'*','gauge.paused_jobs',0,1,0.0);
INSERT INTO "relet_stats" VALUES(-60,1794973680.0,'*','gauge.failed',0,1,0.0);
INSERT INTO "relet_stats" VALUES(-60,1794973680.0,'*','gauge.oldest',0,1,2.38999843597412109375e-01);
CREATE TABLE relet_steps (
    job      text not null,
    kind     text not null check (kind in ('step', 'sleep', 'wait', 'missed')),
    name     text not null,
    result   text,
    until    real,
    done_at  real not null,
    primary key (job, kind, name)
);
INSERT INTO "relet_steps" VALUES('01a1ecc5-1e97-77dc-9a46-a7007eefa7a7','step','charge','"charged 7"',NULL,1794973704.041);
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
INSERT INTO "relet_workers" VALUES('vm:7935:ebdff88a','vm',7935,'{"name":"vm:7935:ebdff88a","host":"vm","pid":7935,"queues":["default"],"slots":10,"tasks":["approve","collect","die","double","first","refuse","report"],"lease":30.0,"version":"0.1.0"}',0,0,'d20b885c-c7f8-4332-9b6f-eab9d77f367b',1794973703.759,1794973703.759);
INSERT INTO "relet_workers" VALUES('vm:7950:493803a5','vm',7950,'{"name":"vm:7950:493803a5","host":"vm","pid":7950,"queues":["default"],"slots":10,"tasks":["approve","collect","die","double","first","refuse","report"],"lease":30.0,"version":"0.1.0"}',0,0,'3dee58ef-0559-4811-a124-65a284665a8d',1794973704.03,1794973704.03);
INSERT INTO "relet_workers" VALUES('vm:7963:11ba462a','vm',7963,'{"name":"vm:7963:11ba462a","host":"vm","pid":7963,"queues":["abandoned"],"slots":10,"tasks":["approve","collect","die","double","first","refuse","report"],"lease":30.0,"version":"0.1.0"}',0,0,'50b7e727-cd2a-4561-a766-af3e3f69634f',1794973704.318,1794973704.318);
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
