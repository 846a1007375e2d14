/* Three jobs of one target: at most one holds it, and none waits for ever.
 *
 * Job 0 is enqueued first. Callers enqueue jobs 1 and 2 in their own transactions, which stay open for any time and may
 * be rolled back; a job's number is its position in line, so that a later job may be committed before an earlier one.
 * A worker claims the holder and settles it. An operator cancels one job, in a transaction that locks its row. Two
 * promoters run at the same time (one where liveness is checked). Other transactions see what a transaction has written when it commits.
 *
 *   enqueue   sql/enqueue/insert: a pending row and a nudge, in the caller's transaction
 *   settle    sql/settle/succeed_plain: removes the row and inserts a nudge
 *   cancel    flows/control.cancel: sql/control/lock_job, then sql/settle/finish, which nudges only if the job holds
 *   promote   flows/promote.promote: sql/promote/lock, take_nudges, then in new statements target_heads, lock_pending
 *             and promote. A head that another transaction has locked is nudged again
 *
 * Properties
 *   one_holder  at most one job holds the target (the code also has a unique index, jobs_holder, which refuses a second)
 *   no_waiter   when no part of the system can act, every job that was committed is over
 *   ends        every job that was committed ends
 *
 * variant  -                  safety    holds       what the code does
 * variant  -                  liveness  holds       what the code does
 * variant  CHECK_AT_ENQUEUE   safety    no_waiter   an enqueue that sees a holder leaves the nudge to that holder's settle
 * variant  SILENT_SETTLE      safety    no_waiter   a settle inserts no nudge
 * variant  DECIDE_FIRST       safety    no_waiter   the promoter reads the line, and deletes the nudges afterwards
 * variant  SKIP_LOCKED_HEAD   safety    no_waiter   a head that is locked is not nudged again
 * variant  NO_PROMOTER_LOCK   safety    one_holder  promoters do not lock each other out
 * variant  LOCK_AND_DECIDE    safety    one_holder  the statement that waits for the promoter's lock also reads the line
 */
#define JOBS 3
#define NONE 9

mtype:phase = { absent, pending, queued, running, gone };
mtype:phase state[JOBS] = absent;
bool locked[JOBS];     /* by an operator's or a promoter's transaction */
byte nudges;           /* committed, and not deleted */
byte deleting;         /* those of them that an open promotion deletes: locked, and skipped by others */
bool promoting;        /* the promoter's lock is taken */
byte open = 3;         /* transactions of callers and the operator that have not ended */

hidden byte one_holder, no_waiter;
#define expect(property, condition) property = (condition); assert(property)

#define held(job) (state[job] == queued || state[job] == running)
#define free_target !(held(0) || held(1) || held(2))
#define is_over(job) (state[job] == absent || state[job] == gone)
#define all_over (is_over(0) && is_over(1) && is_over(2))
ltl ends { <> (open == 0 && all_over) }

proctype caller(byte job) {
    bool nudge = true;
#ifdef CHECK_AT_ENQUEUE
    nudge = free_target;
#endif
    if
    :: atomic { state[job] = pending; nudges = nudges + nudge; open-- }
    :: open--              /* the caller rolls back */
    fi
}

proctype worker() {
    byte job;
end:
    do
    :: atomic {
        if
        :: state[0] == queued && !locked[0] -> job = 0
        :: state[1] == queued && !locked[1] -> job = 1
        :: state[2] == queued && !locked[2] -> job = 2
        fi;
        state[job] = running
       };
       atomic {
        !locked[job];
        if
        :: state[job] == running ->
            state[job] = gone;
#ifndef SILENT_SETTLE
            nudges++
#endif
        :: else
        fi
       }
    od
}

/* A running job would get a request, which cancel.pml is about: here the operator leaves it alone. */
proctype operator() {
    byte job;
    if
    :: job = 0
    :: job = 1
    :: job = 2
    :: open--; goto stopped
    fi;
    if
    :: atomic { (state[job] == pending || state[job] == queued) && !locked[job] -> locked[job] = true }
    :: open--; goto stopped
    fi;
    atomic {
        nudges = nudges + (state[job] == queued);
        state[job] = gone; locked[job] = false; open--
    }
stopped:
    skip
}

/* sql/promote/target_heads: the first job in line if the target is free. */
inline read_head() {
    head = NONE;
    if
    :: free_target && state[0] == pending -> head = 0
    :: free_target && state[0] != pending && state[1] == pending -> head = 1
    :: free_target && state[0] != pending && state[1] != pending && state[2] == pending -> head = 2
    :: else
    fi
}

proctype promoter() {
    byte head = NONE, taken;
    bool again;
end:
    do
    :: nudges > deleting;
#ifdef LOCK_AND_DECIDE
        atomic { read_head() };
#endif
#ifndef NO_PROMOTER_LOCK
        atomic { !promoting -> promoting = true };
#endif
#ifdef DECIDE_FIRST
        atomic { read_head() };
#endif
        atomic { taken = nudges - deleting; deleting = deleting + taken };   /* take_nudges */
#if !defined(LOCK_AND_DECIDE) && !defined(DECIDE_FIRST)
        atomic { read_head() };
#endif
        again = false;
        atomic {                           /* lock_pending skips a locked row, and reads the others again */
            if
            :: head != NONE && locked[head] ->
#ifndef SKIP_LOCKED_HEAD
                again = true;
#endif
                head = NONE
            :: head != NONE && !locked[head] && state[head] == pending -> locked[head] = true
            :: head != NONE && !locked[head] && state[head] != pending -> again = true; head = NONE
            :: head == NONE
            fi
        };
        atomic {                           /* promote and commit */
            if
            :: head != NONE ->
                state[head] = queued; locked[head] = false;
                expect(one_holder, held(0) + held(1) + held(2) == 1);
                head = NONE
            :: else
            fi;
            nudges = nudges - taken + again; deleting = deleting - taken;
            taken = 0; again = false; promoting = false
        }
    od
}

/* `timeout`: no other process can act. */
proctype judge() {
end:
    timeout;
    expect(no_waiter, all_over)
}

init {
    atomic {
        state[0] = pending; nudges = 1;
        run caller(1); run caller(2); run worker(); run operator(); run promoter();
#ifndef LIVENESS
        run promoter();
#endif
#if !defined(LIVENESS) && !defined(NO_PROMOTER_LOCK) && !defined(LOCK_AND_DECIDE)
        run judge()    /* `timeout` would hide cycles from a search under fairness */
#endif
    }
}
