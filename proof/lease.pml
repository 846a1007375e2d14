/* One job and its lease: claim, renew, settle, reap.
 *
 * Two workers, a reaper and the clock of the database. A worker may die after its claim, a request or an answer may be
 * lost, and any step may take any time. A worker sends a statement, the database executes it, and the answer arrives:
 * these are three steps, between which the clock may tick. `left` counts the ticks until the lease expires. `certain`
 * counts, on the worker's own clock, the ticks until its deadline.
 *
 *   claim     sql/claim/claim: writes state, token and expiry in one statement, and skips a locked row. A claim whose
 *             answer is lost is sent again with its token: flows/claim.claim_again, sql/claim/claimed
 *   renew     sql/lease/renew: a row that is locked is neither renewed nor lost
 *   settle    sql/settle/succeed_plain and sql/settle/lock_owned with change; a settle whose answer is lost is sent
 *             again: sql/settle/find_settled
 *   release   a job whose handler would start past its deadline (StartedTooLate), and a job whose claim was given up
 *             and that a renewal reports as unknown (heartbeat._release_orphans)
 *   reap      sql/lease/lock_expired locks the row, sql/settle/change writes the decision
 *
 * The queue has no delays here: a retry is queued at once. A worker renews at most once in an attempt, and attempts are
 * given back at most once, so that every run is finite. Tokens that no part of the model knows are used again.
 *
 * Properties
 *   fence     only the owner of the current claim changes the row
 *   unharmed  a reaper takes only a lease that has expired, and only after its owner's deadline
 *   in_time   a handler starts only while its worker owns the job
 *   truth     a worker that is told "settled" has settled; one that is told "lost" has not recorded a success
 *   once      a job that is over stays as it is
 *   ends      the job ends
 *
 * variant  -                     safety    holds     what the code does
 * variant  -                     liveness  holds     what the code does
 * variant  OWNER_ONLY            safety    fence     the guard compares the worker's name, not a token of each claim
 * variant  STATE_ONLY            safety    fence     the guard compares only the state
 * variant  ID_ONLY               safety    fence     the guard compares only the id
 * variant  SPLIT_REAP            safety    unharmed  the reaper reads expired jobs, and changes them later by id
 * variant  REAP_KEEPS_TOKEN      safety    truth     the reaper leaves the token on the row
 * variant  FORGET_TOKEN          safety    truth     a settle removes the token, so that its repeat finds nothing
 * variant  DEADLINE_FROM_ANSWER  safety    in_time   the worker's deadline counts from the answer, not from the request
 * variant  START_LATE            safety    in_time   a handler starts without a comparison with the deadline
 * variant  LATE_LEASE            liveness  cycle     the claim writes no expiry; the first renewal does
 * variant  NO_CAP                liveness  cycle     lost attempts do not count
 */
#define MAX_ATTEMPTS 2
#ifdef LIVENESS
#define LEASE 1
#define LOSSES 1
#else
#define LEASE 2
#define LOSSES 2
#endif
#define NEVER 9
#define NONE 0

mtype:phase = { queued, running, succeeded, failed };
mtype:phase state = queued;
byte token = NONE;    /* of the row */
byte left;            /* ticks until the lease expires */
byte attempt;
bool locked;          /* the reaper has locked the row */
byte lost;            /* messages lost so far */
byte given_back;

byte mine[2] = NONE;  /* the token that a worker knows */
byte sent[2];         /* ticks left of a lease that would start when the request was sent */
byte certain[2];      /* ticks until the worker's deadline */
bool works[2];        /* its handler runs */

bool owns[2];         /* the current claim is this worker's: not known to the model's parts */
bool settled[2];      /* this attempt's outcome was recorded */

hidden byte fence, unharmed, in_time, truth, once;
#define expect(property, condition) property = (condition); assert(property)

#define over (state == succeeded || state == failed)
ltl ends { <> over }

#if defined(STATE_ONLY)
#define valid (state == running)
#elif defined(ID_ONLY)
#define valid true
#else
#define valid (state == running && token == mine[me])
#endif

#ifdef OWNER_ONLY
#define claimed_before owns[me]    /* a name alone does not tell */
#else
#define claimed_before (state == running && token == mine[me])
#endif

inline take_token() {
#ifdef OWNER_ONLY
    mine[me] = 1
#else
    if
    :: token != 1 && mine[1 - me] != 1 -> mine[me] = 1
    :: else ->
        if
        :: token != 2 && mine[1 - me] != 2 -> mine[me] = 2
        :: else -> mine[me] = 3
        fi
    fi
#endif
}

inline forget() {
    mine[me] = NONE; sent[me] = 0; certain[me] = 0; works[me] = false; settled[me] = false; renewed = false; success = false; told = false
}

inline claim() {
    expect(once, !over);
    state = running; token = mine[me]; attempt++;
    owns[1 - me] = false; owns[me] = true;
#ifdef LATE_LEASE
    left = NEVER
#else
    left = LEASE
#endif
}

inline set_deadline() {
#ifdef DEADLINE_FROM_ANSWER
    certain[me] = LEASE;
#else
    certain[me] = sent[me];
#endif
    sent[me] = 0
}

/* The end of an attempt: a success, or a failure with attempts left or none. */
inline record(success) {
    expect(fence, owns[me]);
    owns[me] = false; settled[me] = true; left = 0;
#ifdef FORGET_TOKEN
    token = NONE;
#endif
    if
    :: success -> state = succeeded
    :: else -> state = (attempt >= MAX_ATTEMPTS -> failed : queued)
    fi
}

inline release() {
    !locked;
    if
    :: valid ->
        expect(fence, owns[me]);
        owns[me] = false; state = queued; left = 0;
        if
        :: given_back < 1 -> given_back++; attempt--
        :: else -> state = (attempt >= MAX_ATTEMPTS -> failed : queued)
        fi
    :: else
    fi
}

proctype worker(byte me) {
    bool renewed, success, told;

free:
    atomic {
        if
        :: over -> goto stopped
        :: state == queued && !locked
        fi;
        take_token(); sent[me] = LEASE
    }
claiming:
    atomic {
        if
        :: over -> goto stopped
        :: claimed_before && !locked                    /* an earlier try was committed */
        :: !claimed_before && state == queued && !locked -> claim()
        :: !claimed_before && state == running -> forget(); goto free
        fi
    }
    if
    :: atomic { lost < LOSSES -> lost++ };
        if
        :: goto claiming                            /* sent again with its token */
        :: atomic { release(); forget() }; goto free    /* given up, and reported by a renewal as unknown */
        fi
    :: atomic { forget() }; goto free                   /* the worker dies */
    :: atomic { set_deadline() }
    fi;
    atomic {
#ifndef START_LATE
        if
        :: certain[me] == 0 -> release(); forget(); goto free
        :: else
        fi;
#endif
        expect(in_time, owns[me]);
        works[me] = true
    }
working:
    if
    :: atomic { forget() }; goto free               /* the worker dies, perhaps by its handler */
    :: atomic { !renewed -> renewed = true; sent[me] = LEASE };
        if
        :: atomic { lost < LOSSES -> lost++; sent[me] = 0 }; goto working   /* the request is lost */
        :: atomic {
            if
            :: valid && !locked -> expect(fence, owns[me]); left = LEASE
            :: valid && locked -> sent[me] = 0; goto working
            :: !valid -> forget(); goto free        /* the handler is aborted */
            fi
           }
        fi;
        if
        :: atomic { lost < LOSSES -> lost++; sent[me] = 0 }                 /* the answer is lost */
        :: atomic { set_deadline() }
        fi;
        goto working
    :: success = true
    :: success = false
    fi;
settling:
    atomic {
        !locked;
        if
        :: valid -> record(success); told = true
        :: else -> told = (state != running && token == mine[me])
        fi
    }
    if
    :: atomic { lost < LOSSES -> lost++ }; goto settling
    :: atomic {
        expect(truth, (told -> settled[me] : !(settled[me] && success)));
        forget()
       }
    fi;
    goto free;
stopped:
    skip
}

proctype reaper() {
end:
    do
    :: atomic { state == running && left == 0 && !locked;
#ifndef SPLIT_REAP
        locked = true
#endif
       };
        if
        :: atomic { lost < LOSSES -> lost++; locked = false }      /* the reaper dies, and the database rolls back */
        :: atomic {
            expect(unharmed, state == running && left == 0
                             && !(owns[0] && works[0] && certain[0]) && !(owns[1] && works[1] && certain[1]));
            owns[0] = false; owns[1] = false; locked = false;
#ifndef REAP_KEEPS_TOKEN
            token = NONE;
#endif
#ifdef NO_CAP
            attempt--;
#endif
            state = (attempt >= MAX_ATTEMPTS -> failed : queued)
           }
        fi
    :: over -> break
    od
}

proctype clock() {
end:
    do
    :: atomic {
        !over && (state == running && left > 0 && left < NEVER || sent[0] || sent[1] || certain[0] || certain[1]);
        if
        :: state == running && left > 0 && left < NEVER -> left--
        :: else
        fi;
        if
        :: sent[0] -> sent[0]--
        :: else
        fi;
        if
        :: sent[1] -> sent[1]--
        :: else
        fi;
        if
        :: certain[0] -> certain[0]--
        :: else
        fi;
        if
        :: certain[1] -> certain[1]--
        :: else
        fi
       }
    od
}

init {
    atomic { run worker(0); run worker(1); run reaper(); run clock() }
}
