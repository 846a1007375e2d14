/* A queue with max_running = 1: the number of running rows never exceeds it, and a dead owner does not keep the room.
 *
 * Two jobs, two workers. A worker locks the limit, counts, claims a job if there is room, then renews, settles, or dies.
 * The clock may let a lease expire at any time while its owner lives on. Other transactions see what a claim has
 * written when it commits; until then its rows are locked.
 *
 *   lock and count  sql/limits/lock: the function lock_limits locks the row of the limit, and counts running rows in a
 *                   second statement, those with expired leases included
 *   reap            flows/limits._lock: if the limit is used up, sql/lease/lock_expired and sql/settle/change, then the
 *                   count is taken again
 *   claim           sql/claim/claim, for as many jobs as there is room, in the same transaction
 *   renew, settle   guarded by id, token and state; a worker that was reaped changes nothing
 *
 * Properties
 *   bounded    no more than one row is running at any commit
 *   no_waiter  when no part of the system can act, every job is over
 *   ends       every job ends
 *
 * variant  -              safety    holds      what the code does
 * variant  -              liveness  holds      what the code does
 * variant  COUNT_LIVE     safety    bounded    expired leases do not count, and are not reaped
 * variant  NO_LOCK        safety    bounded    the claim counts without a lock on the limit
 * variant  ONE_STATEMENT  safety    bounded    the statement that waits for the limit's lock also counts
 * variant  NO_REAP        liveness  cycle      a claim that finds the limit used up does not reap
 * variant  NEW_LIMIT      safety    bounded    a limit is set while a claim that began without it is not committed yet:
 * .                                            a known exception, it binds the claims that begin afterwards
 */
#define NONE 9
#define LIMIT 1

mtype:phase = { queued, running, over };
mtype:phase state[2] = queued;
bool expired[2];
byte owner[2] = NONE;   /* the worker whose token the row has */
byte row[2] = NONE;     /* the worker whose transaction has locked the row */
byte limit = NONE;      /* the worker whose transaction has locked the limit */
byte crashes;
byte expiries;         /* a few are enough, and one more for a worker that died */
bool limited = true;

hidden byte bounded, no_waiter;
#define expect(property, condition) property = (condition); assert(property)

#define all_over (state[0] == over && state[1] == over)
ltl ends { <> all_over }

#ifdef COUNT_LIVE
#define counts(job) (state[job] == running && !expired[job] && job != reaped)
#else
#define counts(job) (state[job] == running && job != reaped)
#endif
#define number_running (counts(0) + counts(1))

inline rollback() {
    if
    :: row[0] == me -> row[0] = NONE
    :: else
    fi;
    if
    :: row[1] == me -> row[1] = NONE
    :: else
    fi;
    if
    :: limit == me -> limit = NONE
    :: else
    fi;
    job = NONE; reaped = NONE; number = 0
}

inline commit() {
    if
    :: reaped != NONE -> state[reaped] = queued; expired[reaped] = false; owner[reaped] = NONE
    :: else
    fi;
    if
    :: job != NONE -> state[job] = running; expired[job] = false; owner[job] = me
    :: else
    fi;
    expect(bounded, (state[0] == running) + (state[1] == running) <= LIMIT);
    taken = job;
    rollback()
}

proctype worker(byte me) {
    byte job = NONE, reaped = NONE, taken = NONE, number;
    bool renewed;

free:
    atomic {
        if
        :: all_over -> goto stopped
        :: state[0] == queued || state[1] == queued || expired[0] || expired[1]
        fi
    };
#ifdef NEW_LIMIT
    if
    :: !limited -> goto claiming
    :: limited
    fi;
#endif
#ifdef ONE_STATEMENT
    atomic { number = number_running };
#endif
#ifndef NO_LOCK
    atomic { limit == NONE -> limit = me };
#endif
#ifndef ONE_STATEMENT
    atomic { number = number_running };
#endif
#if !defined(COUNT_LIVE) && !defined(NO_REAP)
    if
    :: number >= LIMIT ->
        atomic {
            if
            :: state[0] == running && expired[0] && row[0] == NONE -> reaped = 0; row[0] = me
            :: state[1] == running && expired[1] && row[1] == NONE -> reaped = 1; row[1] = me
            :: else
            fi
        };
        atomic { number = number_running }
    :: else
    fi;
#endif
    if
    :: number >= LIMIT ->                  /* full: commit what was reaped, and wait until the room may have changed */
        atomic { commit() };
        if
        :: all_over -> goto stopped
        :: (state[0] != running || expired[0]) && (state[1] != running || expired[1])
        fi;
        goto free
    :: else
    fi;
claiming:
    atomic {
        if
        :: (state[0] == queued || reaped == 0) && (row[0] == NONE || row[0] == me) -> job = 0; row[0] = me
        :: (state[1] == queued || reaped == 1) && (row[1] == NONE || row[1] == me) -> job = 1; row[1] = me
        :: else
        fi
    };
    if
    :: atomic { crashes < 1 -> crashes++; rollback() }; goto free
    :: atomic { true -> commit() }
    fi;
    if
    :: taken == NONE -> goto free
    :: else
    fi;
working:
    if
    :: atomic { crashes < 1 -> crashes++; taken = NONE; renewed = false }; goto free
    :: atomic {
        !renewed && row[taken] == NONE ->   /* a locked row is neither renewed nor lost */
        renewed = true;
        if
        :: state[taken] == running && owner[taken] == me -> expired[taken] = false
        :: else
        fi
       };
       goto working
    :: atomic {
        row[taken] == NONE ->
        if
        :: state[taken] == running && owner[taken] == me -> state[taken] = over; expired[taken] = false
        :: else
        fi;
        taken = NONE; renewed = false
       };
       goto free
    fi;
stopped:
    skip
}

proctype clock() {
end:
    do
    :: atomic { state[0] == running && !expired[0] && row[0] == NONE && expiries < 2 + crashes -> expired[0] = true; expiries++ }
    :: atomic { state[1] == running && !expired[1] && row[1] == NONE && expiries < 2 + crashes -> expired[1] = true; expiries++ }
    :: all_over -> break
    od
}

#ifdef NEW_LIMIT
proctype operator() {
    limited = true
}
#endif

proctype judge() {
end:
    timeout;
    expect(no_waiter, all_over)
}

init {
    atomic {
#ifdef NEW_LIMIT
        limited = false; run operator();
#endif
        run worker(0); run worker(1); run clock();
#ifndef LIVENESS
        run judge()    /* `timeout` would hide cycles from a search under fairness */
#endif
    }
}
