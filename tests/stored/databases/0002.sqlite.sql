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
INSERT INTO "relet_attempts" VALUES('01a1ec8f-8459-7279-b081-3ea9f394be65',1,1,'vm:1087:0908ddd5',1794970191.321,1794970191.341,NULL,1794970221.321,'retried','ValueError: card declined

Traceback (most recent call last):
  File "/srv/tests/stored/shop.py", line 28, in refuse
    raise ValueError(reason)
ValueError: card declined
');
INSERT INTO "relet_attempts" VALUES('01a1ec8f-8459-7279-b081-3ea9f394be65',2,2,'vm:1087:0908ddd5',1794970191.349,1794970191.351,NULL,1794970221.349,'failed','ValueError: card declined

Traceback (most recent call last):
  File "/srv/tests/stored/shop.py", line 28, in refuse
    raise ValueError(reason)
ValueError: card declined
');
INSERT INTO "relet_attempts" VALUES('01a1ec8f-8618-7722-8d92-f81d93540ff6',1,1,'vm:1102:53d5acc1',1794970191.759,1794970191.764,NULL,1794970221.759,'snoozed',NULL);
CREATE TABLE relet_audit (
    seq      integer primary key autoincrement,
    id       text not null unique,  
    at       real not null,
    who      text not null,
    what     text not null,
    subject  text not null,
    detail   text
);
INSERT INTO "relet_audit" VALUES(1,'01a1ec8f-8616-780a-a451-209e78db2c2d',1794970191.384,'ada','cancel','01a1ec8f-8613-79df-9035-c1b74f69753e',NULL);
INSERT INTO "relet_audit" VALUES(2,'01a1ec8f-8939-7e90-af24-ad6b7dedd000',1794970192.185,'ada','pause_queue','paused',NULL);
CREATE TABLE relet_dependencies (
    job         text not null,
    depends_on  text not null,  
    position    integer not null,
    state       text check (state in ('succeeded', 'failed', 'cancelled', 'deleted')),
    result      text,
    task        text,  
    primary key (job, depends_on)
);
INSERT INTO "relet_dependencies" VALUES('01a1ec8f-8932-7a47-9dd0-d9537efef18b','01a1ec8f-892a-7c60-9ba1-5aa01d65e7c5',0,NULL,NULL,NULL);
INSERT INTO "relet_dependencies" VALUES('01a1ec8f-8932-7a47-9dd0-d9537efef18b','01a1ec8f-892b-7eeb-ac41-e37ef9e5cebd',1,NULL,NULL,NULL);
INSERT INTO "relet_dependencies" VALUES('01a1ec8f-8932-7a47-9dd0-d9537efef18b','01a1ec8f-892c-7027-a618-992091660562',2,NULL,NULL,NULL);
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
INSERT INTO "relet_finished" VALUES('01a1ec8f-8457-7231-bf31-92c05c29eb5d','succeeded','default','double',0,NULL,NULL,'{"number":1}','2',NULL,1,4,0,1,'vm:1087:0908ddd5','ab315271-5180-4347-9e38-f73e23289cb2','01a1ec8f-8457-7231-bf31-92c05c29eb5d',0,0,NULL,1794970190.936,1794970190.936,1794970191.321,NULL,NULL,1794970191.33);
INSERT INTO "relet_finished" VALUES('01a1ec8f-8459-7070-a9ea-16db5629a7be','succeeded','default','first',0,NULL,NULL,'{"number":2}',NULL,NULL,1,4,0,1,'vm:1087:0908ddd5','ab315271-5180-4347-9e38-f73e23289cb2','01a1ec8f-8459-7070-a9ea-16db5629a7be',0,1,NULL,1794970190.937,1794970190.937,1794970191.321,NULL,NULL,1794970191.333);
INSERT INTO "relet_finished" VALUES('01a1ec8f-85dc-742a-bd00-04bee0556fbc','succeeded','default','double',0,NULL,NULL,'{"number":2}','4',NULL,1,4,0,1,'vm:1087:0908ddd5','dbb7aac4-9ba4-4253-abd0-e7c10005d551','01a1ec8f-8459-7070-a9ea-16db5629a7be',1,0,NULL,1794970191.335,1794970191.335,1794970191.338,NULL,NULL,1794970191.344);
INSERT INTO "relet_finished" VALUES('01a1ec8f-8613-79df-9035-c1b74f69753e','cancelled','default','double',0,NULL,NULL,'{"number":3}',NULL,NULL,0,4,0,0,NULL,NULL,'01a1ec8f-8613-79df-9035-c1b74f69753e',0,0,NULL,1794970191.38,1794973791.38,NULL,NULL,NULL,1794970191.383);
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
INSERT INTO "relet_jobs" VALUES('01a1ec8f-8459-7279-b081-3ea9f394be65',6,'failed',NULL,'default','refuse',0,0,'blocked',NULL,1,'{"reason":"card declined"}',1.79497019134288525584e+09,2,2,0,0,2,'{"backoff":[0.01,0.01,2.0,true]}',NULL,NULL,'86f2c82f-2f29-41cf-9bff-b0b34e8a0ac5',NULL,NULL,NULL,0,NULL,NULL,'ValueError: card declined

Traceback (most recent call last):
  File "/srv/tests/stored/shop.py", line 28, in refuse
    raise ValueError(reason)
ValueError: card declined
','01a1ec8f-8459-7279-b081-3ea9f394be65',0,0,0,NULL,NULL,1,NULL,0,1794970190.939,1794970191.351,NULL);
INSERT INTO "relet_jobs" VALUES('01a1ec8f-8618-7722-8d92-f81d93540ff6',8,'pending','time','default','approve',0,0,NULL,NULL,0,'{"amount":7}',2111194191.765,0,4,0,0,1,NULL,NULL,NULL,'5292fe8a-46c6-4547-84d8-8ace5c26ead1',NULL,NULL,NULL,0,NULL,NULL,NULL,'01a1ec8f-8618-7722-8d92-f81d93540ff6',0,0,0,'answer',NULL,0,NULL,0,1794970191.385,NULL,NULL);
INSERT INTO "relet_jobs" VALUES('01a1ec8f-87a5-745e-b166-6c7a889c21c4',9,'running',NULL,'abandoned','die',0,0,NULL,NULL,0,'{"folder":"/tmp/tmpwo05l0ai"}',1794970191.782,1,4,0,0,1,NULL,NULL,'vm:1115:05335487','18dd8b6f-f374-4012-85ee-4851ddd5fe79',1794970222.149,NULL,1794970192.149,0,NULL,NULL,NULL,'01a1ec8f-87a5-745e-b166-6c7a889c21c4',0,0,0,NULL,NULL,0,NULL,0,1794970191.782,NULL,NULL);
INSERT INTO "relet_jobs" VALUES('01a1ec8f-892a-7c60-9ba1-5aa01d65e7c5',10,'queued',NULL,'waiting','double',0,0,NULL,NULL,0,'{"number":0}',1794970192.17,0,4,0,0,0,NULL,NULL,NULL,NULL,NULL,NULL,NULL,0,NULL,NULL,NULL,'01a1ec8f-892a-7c60-9ba1-5aa01d65e7c5',0,0,0,NULL,NULL,0,NULL,0,1794970192.17,NULL,NULL);
INSERT INTO "relet_jobs" VALUES('01a1ec8f-892b-7eeb-ac41-e37ef9e5cebd',11,'queued',NULL,'waiting','double',1,-1,NULL,NULL,0,'{"number":1}',1794970192.171,0,4,0,0,0,NULL,NULL,NULL,NULL,NULL,NULL,NULL,0,NULL,NULL,NULL,'01a1ec8f-892b-7eeb-ac41-e37ef9e5cebd',0,0,0,NULL,NULL,0,NULL,0,1794970192.171,NULL,NULL);
INSERT INTO "relet_jobs" VALUES('01a1ec8f-892c-7027-a618-992091660562',12,'queued',NULL,'waiting','double',2,-2,NULL,NULL,0,'{"number":2}',1794970192.172,0,4,0,0,0,NULL,NULL,NULL,NULL,NULL,NULL,NULL,0,NULL,NULL,NULL,'01a1ec8f-892c-7027-a618-992091660562',0,0,0,NULL,NULL,0,NULL,0,1794970192.172,NULL,NULL);
INSERT INTO "relet_jobs" VALUES('01a1ec8f-892c-7f65-9975-3d45f87c9eeb',13,'pending','time','waiting','double',0,0,NULL,NULL,0,'{"number":10}',1794970193.173,0,4,0,0,0,NULL,NULL,NULL,NULL,NULL,NULL,NULL,0,NULL,NULL,NULL,'01a1ec8f-892c-7f65-9975-3d45f87c9eeb',0,0,0,NULL,NULL,0,NULL,0,1794970192.173,NULL,NULL);
INSERT INTO "relet_jobs" VALUES('01a1ec8f-892e-752f-8905-77d9483bf194',14,'pending','target','waiting','double',0,0,'blocked',NULL,0,'{"number":11}',1794970192.174,0,4,0,0,0,NULL,NULL,NULL,NULL,NULL,NULL,NULL,0,NULL,NULL,NULL,'01a1ec8f-892e-752f-8905-77d9483bf194',0,0,0,NULL,NULL,0,NULL,0,1794970192.174,NULL,NULL);
INSERT INTO "relet_jobs" VALUES('01a1ec8f-892f-7ea0-af4e-9405037e1b1b',15,'queued',NULL,'waiting','double',0,0,NULL,NULL,0,'{"number":12}',1794970192.175,0,4,0,0,0,NULL,NULL,NULL,NULL,NULL,NULL,NULL,0,NULL,NULL,NULL,'01a1ec8f-892f-7ea0-af4e-9405037e1b1b',0,0,0,NULL,NULL,0,'once',0,1794970192.175,NULL,NULL);
INSERT INTO "relet_jobs" VALUES('01a1ec8f-8930-7a7c-8a49-7398bc677554',16,'queued',NULL,'waiting','double',0,0,NULL,NULL,0,'{"number":13}',1794970192.177,0,4,0,0,0,NULL,NULL,NULL,NULL,NULL,NULL,NULL,0,NULL,NULL,NULL,'01a1ec8f-8930-7a7c-8a49-7398bc677554',0,0,0,NULL,NULL,0,'window',1,1794970192.177,NULL,NULL);
INSERT INTO "relet_jobs" VALUES('01a1ec8f-8932-7a47-9dd0-d9537efef18b',17,'pending','jobs','waiting','collect',0,0,NULL,NULL,0,'{}',1794970192.178,0,4,0,0,0,NULL,NULL,NULL,NULL,NULL,NULL,NULL,0,NULL,NULL,NULL,'01a1ec8f-8932-7a47-9dd0-d9537efef18b',0,3,3,NULL,NULL,0,NULL,0,1794970192.178,NULL,NULL);
INSERT INTO "relet_jobs" VALUES('01a1ec8f-8933-721c-b9a9-6c53c60be9a1',18,'paused',NULL,'waiting','double',0,0,NULL,NULL,0,'{"number":14}',1794970192.179,0,4,0,0,0,NULL,NULL,NULL,NULL,NULL,NULL,NULL,0,NULL,NULL,NULL,'01a1ec8f-8933-721c-b9a9-6c53c60be9a1',0,0,0,NULL,NULL,0,NULL,0,1794970192.179,1794970192.181,NULL);
INSERT INTO "relet_jobs" VALUES('01a1ec8f-8936-70d8-b596-6e534f814d53',19,'queued',NULL,'paused','double',0,0,NULL,NULL,0,'{"number":15}',1794970192.182,0,4,0,0,0,NULL,NULL,NULL,NULL,NULL,NULL,NULL,0,NULL,NULL,NULL,'01a1ec8f-8936-70d8-b596-6e534f814d53',0,0,0,NULL,NULL,0,NULL,0,1794970192.182,NULL,NULL);
INSERT INTO "relet_jobs" VALUES('01a1ec8f-8937-732d-ab48-2ced8d6a4cba',20,'queued',NULL,'limited','double',0,0,NULL,'a',0,'{"number":0}',1794970192.183,0,4,0,0,0,NULL,NULL,NULL,NULL,NULL,NULL,NULL,0,NULL,NULL,NULL,'01a1ec8f-8937-732d-ab48-2ced8d6a4cba',0,0,0,NULL,NULL,0,NULL,0,1794970192.183,NULL,NULL);
INSERT INTO "relet_jobs" VALUES('01a1ec8f-8938-7b67-afda-143e59d8df29',21,'queued',NULL,'limited','double',0,0,NULL,'a',0,'{"number":1}',1794970192.184,0,4,0,0,0,NULL,NULL,NULL,NULL,NULL,NULL,NULL,0,NULL,NULL,NULL,'01a1ec8f-8938-7b67-afda-143e59d8df29',0,0,0,NULL,NULL,0,NULL,0,1794970192.184,NULL,NULL);
INSERT INTO "relet_jobs" VALUES('01a1ec8f-8938-7715-8b1a-735bda0264c6',22,'queued',NULL,'limited','double',0,0,NULL,'b',0,'{"number":2}',1794970192.185,0,4,0,0,0,NULL,NULL,NULL,NULL,NULL,NULL,NULL,0,NULL,NULL,NULL,'01a1ec8f-8938-7715-8b1a-735bda0264c6',0,0,0,NULL,NULL,0,NULL,0,1794970192.185,NULL,NULL);
CREATE TABLE relet_keys (
    key    text primary key not null,
    job    text not null,
    until  real
);
INSERT INTO "relet_keys" VALUES('once','01a1ec8f-892f-7ea0-af4e-9405037e1b1b',NULL);
INSERT INTO "relet_keys" VALUES('window','01a1ec8f-8930-7a7c-8a49-7398bc677554',1794970252.176);
CREATE TABLE relet_migrations (version integer primary key, applied_at real not null, oldest integer, release text);
INSERT INTO "relet_migrations" VALUES(1,1.79497019091100835797e+09,1,'0.1.0');
INSERT INTO "relet_migrations" VALUES(2,1.79497019091302013396e+09,1,'0.1.0');
CREATE TABLE relet_nudges (
    id      integer primary key autoincrement,
    kind    text not null check (kind in ('target', 'job', 'chain', 'signal')),
    key     text not null,
    beyond  text
);
INSERT INTO "relet_nudges" VALUES(6,'target','blocked',NULL);
INSERT INTO "relet_nudges" VALUES(7,'job','01a1ec8f-8932-7a47-9dd0-d9537efef18b',NULL);
CREATE TABLE relet_operations (
    id       text primary key,
    verb     text not null,
    subject  text not null,
    request  text,  
    outcome  text,  
    at       real not null
) without rowid;
INSERT INTO "relet_operations" VALUES('01a1ec8f-8443-7251-ba5a-d2e65ef52a4e','limit_queue','limited',NULL,'{}',1794970190.932);
INSERT INTO "relet_operations" VALUES('01a1ec8f-8615-7d86-a68e-1e2d95f57f7d','cancel','01a1ec8f-8613-79df-9035-c1b74f69753e',NULL,'{"jobs":[{"id":"01a1ec8f-8613-79df-9035-c1b74f69753e","task":"double","queue":"default","state":"cancelled","priority":0,"payload":"null","attempt":0,"max_attempts":4,"losses":0,"version":0,"chain":"01a1ec8f-8613-79df-9035-c1b74f69753e","position":0,"created_at":"2026-11-18T02:49:51.380000Z","run_at":"2026-11-18T03:49:51.380000Z","started_at":null,"finished_at":"2026-11-18T02:49:51.383000Z","wait":null,"target":null,"holds":false,"unique":null,"worker":null,"expires_at":null,"request":null,"result":null,"error":null,"continued":false,"progress":null,"group":null,"awaits":null,"context":null,"renewed_at":null,"start_by":null,"tags":[],"rerun_of":null,"existing":false}]}',1794970191.382);
INSERT INTO "relet_operations" VALUES('01a1ec8f-8934-792b-9213-c9fb4903dd95','pause','01a1ec8f-8933-721c-b9a9-6c53c60be9a1',NULL,'{"jobs":[{"id":"01a1ec8f-8933-721c-b9a9-6c53c60be9a1","task":"double","queue":"waiting","state":"paused","priority":0,"payload":"null","attempt":0,"max_attempts":4,"losses":0,"version":0,"chain":"01a1ec8f-8933-721c-b9a9-6c53c60be9a1","position":0,"created_at":"2026-11-18T02:49:52.179000Z","run_at":"2026-11-18T02:49:52.179000Z","started_at":null,"finished_at":"2026-11-18T02:49:52.181000Z","wait":null,"target":null,"holds":false,"unique":null,"worker":null,"expires_at":null,"request":null,"result":null,"error":null,"continued":false,"progress":null,"group":null,"awaits":null,"context":null,"renewed_at":null,"start_by":null,"tags":[],"rerun_of":null,"existing":false}]}',1794970192.18);
INSERT INTO "relet_operations" VALUES('01a1ec8f-8939-7a20-84ee-8f656ca64c2c','pause_queue','paused',NULL,'{}',1794970192.185);
CREATE TABLE relet_pulse (
    single       integer primary key check (single = 1),
    touched_at   real not null default 0,
    grace_until  real not null default 0
);
INSERT INTO "relet_pulse" VALUES(1,1794970192.14,1794970201.307);
CREATE TABLE relet_quarantine (
    single  integer primary key check (single = 1),
    worker  text,
    until   real not null default 0
);
INSERT INTO "relet_quarantine" VALUES(1,NULL,1794970195.142);
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
INSERT INTO "relet_queue_samples" VALUES('default',0,3,0,0,0,3.8399982452392578125e-01,1794970191.327);
INSERT INTO "relet_queue_samples" VALUES('limited',0,0,0,0,0,NULL,1794970191.327);
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
INSERT INTO "relet_schedules" VALUES('report','report','{"draft":{"id":"01a1ec8f-85a7-7519-bff4-253b2bf6d9fd","task":"report","payload":"{}","queue":"default","priority":0,"run_at":null,"delay":null,"target":null,"group":null,"unique":null,"unique_for":null,"replace":false,"depends_on":[],"policy":{"max_attempts":4,"backoff":{"base":0.5,"max":30.0,"factor":2.0,"jitter":true},"lease":null,"timeout":null,"on_expired":"retry","on_failure":"hold","on_dependency_failure":"hold","follow_up":null},"context":null,"fresh":true,"start_by":null,"tags":[],"rerun_of":null},"cron":"0 3 * * *"}','{"draft":{"id":"","task":"report","payload":"{}","queue":"default","priority":0,"run_at":null,"delay":null,"target":null,"group":null,"unique":null,"unique_for":null,"replace":false,"depends_on":[],"policy":{"max_attempts":4,"backoff":{"base":0.5,"max":30.0,"factor":2.0,"jitter":true},"lease":null,"timeout":null,"on_expired":"retry","on_failure":"hold","on_dependency_failure":"hold","follow_up":null},"context":null,"fresh":true,"start_by":null,"tags":[],"rerun_of":null},"cron":"0 3 * * *"}',0,1794970800.0,1794970191.311,1794970191.311);
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
INSERT INTO "relet_stats" VALUES(60,1794970140.0,'','sampled',0,1,1.0);
INSERT INTO "relet_stats" VALUES(60,1794970140.0,'default','gauge.pending',0,1,0.0);
INSERT INTO "relet_stats" VALUES(60,1794970140.0,'default','gauge.queued',0,1,3.0);
INSERT INTO "relet_stats" VALUES(60,1794970140.0,'default','gauge.running',0,1,0.0);
INSERT INTO "relet_stats" VALUES(60,1794970140.0,'default','gauge.paused_jobs',0,1,0.0);
INSERT INTO "relet_stats" VALUES(60,1794970140.0,'default','gauge.failed',0,1,0.0);
INSERT INTO "relet_stats" VALUES(60,1794970140.0,'default','gauge.oldest',0,1,3.8399982452392578125e-01);
INSERT INTO "relet_stats" VALUES(60,1794970140.0,'limited','gauge.pending',0,1,0.0);
INSERT INTO "relet_stats" VALUES(60,1794970140.0,'limited','gauge.queued',0,1,0.0);
INSERT INTO "relet_stats" VALUES(60,1794970140.0,'limited','gauge.running',0,1,0.0);
INSERT INTO "relet_stats" VALUES(60,1794970140.0,'limited','gauge.paused_jobs',0,1,0.0);
INSERT INTO "relet_stats" VALUES(60,1794970140.0,'limited','gauge.failed',0,1,0.0);
INSERT INTO "relet_stats" VALUES(60,1794970140.0,'limited','gauge.oldest',0,1,0.0);
INSERT INTO "relet_stats" VALUES(-60,1794970140.0,'*','gauge.pending',0,1,0.0);
INSERT INTO "relet_stats" VALUES(-60,1794970140.0,'*','gauge.queued',0,1,3.0);
INSERT INTO "relet_stats" VALUES(-60,1794970140.0,'*','gauge.running',0,1,0.0);
INSERT INTO "relet_stats" VALUES(-60,1794970140.0,'*','gauge.paused_jobs',0,1,0.0);
INSERT INTO "relet_stats" VALUES(-60,1794970140.0,'*','gauge.failed',0,1,0.0);
INSERT INTO "relet_stats" VALUES(-60,1794970140.0,'*','gauge.oldest',0,1,3.8399982452392578125e-01);
CREATE TABLE relet_steps (
    job      text not null,
    kind     text not null check (kind in ('step', 'sleep', 'wait', 'missed')),
    name     text not null,
    result   text,
    until    real,
    done_at  real not null,
    primary key (job, kind, name)
);
INSERT INTO "relet_steps" VALUES('01a1ec8f-8618-7722-8d92-f81d93540ff6','step','charge','"charged 7"',NULL,1794970191.761);
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
INSERT INTO "relet_workers" VALUES('vm:1087:0908ddd5','vm',1087,'{"name":"vm:1087:0908ddd5","host":"vm","pid":1087,"queues":["default"],"slots":10,"tasks":["approve","collect","die","double","first","refuse","report"],"lease":30.0,"version":"0.1.0"}',0,0,'18e8e394-c3ba-4590-a561-a94ec8eeb5c7',1794970191.309,1794970191.309);
INSERT INTO "relet_workers" VALUES('vm:1102:53d5acc1','vm',1102,'{"name":"vm:1102:53d5acc1","host":"vm","pid":1102,"queues":["default"],"slots":10,"tasks":["approve","collect","die","double","first","refuse","report"],"lease":30.0,"version":"0.1.0"}',0,0,'6f225c88-9271-4347-861a-52e2c620efd6',1794970191.749,1794970191.749);
INSERT INTO "relet_workers" VALUES('vm:1115:05335487','vm',1115,'{"name":"vm:1115:05335487","host":"vm","pid":1115,"queues":["abandoned"],"slots":10,"tasks":["approve","collect","die","double","first","refuse","report"],"lease":30.0,"version":"0.1.0"}',0,0,'962f9e8a-e0f8-4185-88bc-ba0fa9e7f17c',1794970192.142,1794970192.142);
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
