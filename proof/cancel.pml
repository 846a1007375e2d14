/* Cancel and pause of a job that is queued, running or waiting for a retry: a request is never lost.
 *
 * One job and its row. A worker claims it and settles it: it succeeds, retries or releases. A reaper takes it away when
 * its lease has expired, which may be at any time. One operator cancels the job, another pauses it. A transaction of
 * several statements has the row locked in between; a statement that waits for the lock reads the row again, but only
 * as far as its condition goes (READ COMMITTED).
 *
 *   cancel, pause   flows/control: sql/control/lock_job, then in a later statement sql/control/set_request if the job
 *                   runs, else sql/settle/finish or change. A pause does not replace a request to cancel
 *   claim           sql/claim/claim, which leaves `request` as it is: only a running job has one
 *   succeed         sql/settle/succeed_plain, one statement; a success stands although a cancel was requested
 *   retry, release  sql/settle/lock_owned, which returns the request, then sql/settle/change or finish: the request
 *                   decides (_core/machine._apply_request), and is removed
 *   reap            sql/lease/lock_expired, then likewise
 *
 * Properties
 *   kept     after a cancel returned, the job is over, or running with the request to cancel
 *   no_more  no attempt starts after a cancel returned
 *   ends     a job whose cancel returned ends
 *
 * variant  -                  safety    holds    what the code does
 * variant  -                  liveness  holds    what the code does
 * variant  TWO_BRANCHES       safety    kept     one statement finishes the job if it sees it queued, or requests if running
 * variant  CLEAR_AT_CLAIM     safety    no_more  cancel sets a flag in any state, and the next claim removes it
 * variant  DECIDE_FIRST       safety    kept     cancel reads the state, and locks the row afterwards
 * variant  REAP_FORGETS       safety    kept     the reaper queues the job although a request stands
 * variant  RETRY_FORGETS      safety    kept     retry and release ignore the request
 * variant  EARLIER_REQUEST    safety    kept     retry and release use the request that the worker read before it settled
 * variant  PAUSE_REPLACES     safety    kept     a pause replaces the request to cancel
 */
#define NONE 0

mtype:phase = { queued, running, pending, paused, succeeded, cancelled };
mtype:wish = { no_request, cancel, pause };
mtype:phase state = queued;
mtype:wish request = no_request;
byte token = NONE;       /* of the row; a worker's current one is `mine` */
bool locked;
bool expired;
bool asked;              /* a cancel returned */
bool flag;               /* CLEAR_AT_CLAIM only */

hidden byte kept, no_more;
#define expect(property, condition) property = (condition); assert(property)

#define over (state == succeeded || state == cancelled)
#define honoured (!asked || over || state == running && request == cancel)
ltl ends { [] (asked -> <> over) }

/* The end of an attempt that did not succeed, in the transaction that has the row locked. */
inline leave(next, wish) {
    if
    :: wish == cancel -> state = cancelled
    :: wish == pause -> state = paused
    :: else -> state = next
    fi;
    request = no_request; expired = false;
#ifdef CLEAR_AT_CLAIM
    if
    :: flag -> state = cancelled
    :: else
    fi;
#endif
    locked = false;
#ifndef CLEAR_AT_CLAIM
    expect(kept, honoured)
#endif
}

proctype worker() {
    byte mine = NONE;
    mtype:wish read = no_request;
end:
    do
    :: atomic {
        state == queued && !locked ->
        expect(no_more, !asked);
        mine = 3 - (token == 2 -> 2 : 1);              /* a token that the row has not had last */
        state = running; token = mine; expired = false;
#ifdef CLEAR_AT_CLAIM
        flag = false
#endif
       };
        read = request;                                 /* with a renewal */
        if
        :: atomic {
            !locked ->
            if
            :: state == running && token == mine -> state = succeeded; request = no_request
            :: else
            fi
           }
        :: atomic {                                     /* retry or release: lock_owned */
            !locked ->
            if
            :: state == running && token == mine -> locked = true;
#ifndef EARLIER_REQUEST
                read = request
#endif
            :: else -> goto next
            fi
           };
           if
#ifdef RETRY_FORGETS
           :: atomic { true -> leave(pending, no_request) }
           :: atomic { true -> leave(queued, no_request) }
#else
           :: atomic { true -> leave(pending, read) }
           :: atomic { true -> leave(queued, read) }
#endif
           fi
        fi;
next:
        atomic { mine = NONE; read = no_request }
    :: atomic { state == pending && !locked -> state = queued }     /* its time has come: the promoter */
    od
}

proctype clock() {
end:
    do
    :: atomic { state == running && !expired && !locked -> expired = true }
    od
}

proctype reaper() {
    mtype:wish read = no_request;
end:
    do
    :: atomic { state == running && expired && !locked -> locked = true; read = request };
       atomic {
        true;
        token = NONE;
#ifdef REAP_FORGETS
        leave(queued, no_request);
#else
        leave(queued, read);
#endif
        read = no_request
       }
    od
}

/* What cancel does to a locked row. */
inline cancel_locked(seen) {
    if
    :: seen == running ->
        request = (state == running -> cancel : request)    /* set_request: ... and state = 'running' */
    :: else -> state = cancelled; request = no_request
    fi
}

proctype canceller() {
    mtype:phase seen;
#if defined(TWO_BRANCHES)
    atomic { seen = state };                            /* the snapshot of the statement */
    atomic {
        !locked ->                                      /* it waits for the row, and reads it again */
        if
        :: over -> goto stopped                         /* refused */
        :: !over && seen == state -> cancel_locked(seen)
        :: !over && seen != state                       /* neither branch: no row */
        fi
    };
#elif defined(CLEAR_AT_CLAIM)
    atomic {
        !locked ->
        if
        :: over -> goto stopped
        :: state == running -> request = cancel
        :: else -> flag = true
        fi;
        asked = true
    };
    goto stopped;
#elif defined(DECIDE_FIRST)
    atomic { seen = state };
    if
    :: seen == succeeded || seen == cancelled -> goto stopped
    :: else
    fi;
    atomic { !locked -> cancel_locked(seen) };
#else
    atomic {
        !locked -> locked = true; seen = state;
        if
        :: over -> locked = false; goto stopped
        :: else
        fi
    };
    atomic { true -> cancel_locked(seen); locked = false };
#endif
    atomic { asked = true; expect(kept, honoured) };
stopped:
    skip
}

proctype pauser() {
    if
    :: atomic { !locked -> locked = true };
       atomic {
        true;
        if
        :: over
        :: state == running ->
#ifdef PAUSE_REPLACES
            request = pause
#else
            request = (request == cancel -> cancel : pause)
#endif
        :: !over && state != running -> state = paused
        fi;
        locked = false;
        expect(kept, honoured)
       };
end:   atomic { state == paused && !locked -> state = pending }      /* resumed */
    :: true
    fi
}

init {
    atomic { run worker(); run clock(); run reaper(); run canceller(); run pauser() }
}
