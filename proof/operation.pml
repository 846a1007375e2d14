/* A call whose answer is lost is repeated: it acts once, and every try returns the answer of the first.
 *
 * One client makes one call: it resumes a failed job, or enqueues a new one. Its connection may be lost at any point, so
 * that the client does not know whether the transaction commits, now or later. It sends the call again while the first
 * try may still be open on the server: such a try is rolled back at some time, or committed if COMMIT was sent. Rivals
 * act on the same job in between: a worker runs it, it fails again, it ends. Other transactions see what a try has
 * written when it commits.
 *
 *   resume    flows/operations.once: sql/operations/begin inserts the id of the call, or waits for the try that has
 *             inserted it. Then flows/control.resume locks the job and decides, and sql/operations/end stores the
 *             answer, in one transaction. A refused call is rolled back with its id
 *   repeat    sql/operations/find returns the stored answer
 *   enqueue   flows/enqueue.enqueue_again: reads the job by the id that the client chose; if there is none, inserts it
 *             (on conflict do nothing waits for a try that is open); then sql/enqueue/delete_resurrected removes the row
 *             if a job of this id is over: it ended after the read
 *
 * The answer of resume is the number of times that the job was resumed, the rival's resumes included.
 *
 * Properties
 *   acts_once  no two tries change the job; no two jobs are enqueued
 *   same       the answer is that of the try that acted; a call that is refused has not acted
 *   alive      a job that was enqueued once does not live again after its end
 *   answered   when no part of the system can act, the client has an answer
 *
 * variant  -                  safety  holds      what the code does
 * variant  NO_ID              safety  acts_once  the call carries no id
 * variant  CHECK_FIRST        safety  same       a try reads whether the id is stored, and stores it when it has acted
 * variant  ID_COMMITTED_LATER safety  acts_once  the id is stored in a second transaction, after the change
 * variant  ID_COMMITTED_FIRST safety  same       the id is stored in a first transaction, before the change
 * variant  CURRENT_STATE      safety  same       the repeat returns the job's present state, not the stored answer
 * variant  NEW_JOB_ID         safety  acts_once  each try of an enqueue chooses a new id for the job
 * variant  NO_SECOND_READ     safety  alive      an enqueue does not read again whether its job is over
 * variant  LATE_STATEMENT     safety  alive      the one statement of a plain enqueue does not read whether its job is over,
 * .                                              and reaches the server after the repeat was stored and its job ended
 */
#define TRIES 2
#define NONE 0
#define REFUSED 9

mtype:verb = { resume, enqueue };
mtype:phase = { absent, failed, pending, over };
mtype:verb verb;
mtype:phase state;
byte resumes;             /* of the job, by the client and by rivals */
byte row = NONE;          /* the try whose transaction has locked the job */
byte opened = NONE;       /* the try whose transaction has inserted the id of the call */
byte stored = NONE;       /* the committed answer under that id */
bool stored_id;
byte inserted = NONE;     /* the try whose open transaction has inserted the job */
bool was_over;            /* the job has ended */

byte acts;                /* tries that changed the job */
byte first = NONE;        /* the answer of the one that did */
byte answer = NONE;       /* what the client gets */
byte tries;               /* sent so far: the client waits for the last, and has lost the connections of the others */

hidden byte acts_once, same, alive, answered;
#define expect(property, condition) property = (condition); assert(property)

inline act(value) {
    acts++; first = (acts == 1 -> value : first);
    expect(acts_once, acts == 1)
}

/* The answer arrives, unless the client has lost this connection and sent the call again. */
inline tell(value) {
    if
    :: number == tries ->
        answer = value;
        expect(same, (answer == REFUSED -> acts == 0 : acts == 1 && answer == first))
    :: else
    fi
}

#define is_lost (number < tries)

inline rollback() {
    row = (row == number -> NONE : row);
    opened = (opened == number -> NONE : opened);
    inserted = (inserted == number -> NONE : inserted)
}

proctype resuming(byte number) {
    byte value = NONE;
#if defined(CHECK_FIRST) || defined(ID_COMMITTED_LATER)
    if
    :: atomic { stored_id -> value = stored; goto told }
    :: !stored_id
    fi;
#elif defined(ID_COMMITTED_FIRST)
    atomic {
        if
        :: stored_id -> value = 1; goto told
        :: !stored_id -> stored_id = true
        fi
    };
#elif !defined(NO_ID)
    if
    :: is_lost -> goto stopped
    :: atomic {                                     /* begin waits for a try that has inserted the id */
        opened == NONE ->
        if
        :: stored_id ->
#ifdef CURRENT_STATE
            value = (state == pending -> resumes : REFUSED);
#else
            value = stored;
#endif
            goto told
        :: !stored_id -> opened = number
        fi
       }
    fi;
#endif
    if
    :: atomic { is_lost -> rollback() }; goto stopped
    :: atomic { row == NONE -> row = number }
    fi;
    if
    :: atomic { state != failed -> value = REFUSED; rollback(); goto told }
    :: state == failed
    fi;
    if
    :: atomic { is_lost -> rollback() }; goto stopped
    :: !is_lost                                     /* the client sends COMMIT */
    fi;
    if
    :: atomic { is_lost -> rollback() }; goto stopped
    :: atomic {
        true;
        state = pending; resumes++; value = resumes;
        act(value);
#if !defined(ID_COMMITTED_LATER) && !defined(NO_ID)
        stored_id = true; stored = value;
#endif
        rollback()                                  /* its locks */
       }
    fi;
#ifdef ID_COMMITTED_LATER
    if
    :: is_lost -> goto stopped
    :: atomic { stored_id = true; stored = value }
    fi;
#endif
told:
    atomic { true -> tell(value) };
stopped:
    skip
}

proctype enqueuing(byte number) {
#ifdef NEW_JOB_ID
    atomic { true; state = pending; act(1) };
    goto told;
#endif
    if
    :: number > 1
    :: number == 1                                  /* flows/enqueue.enqueue: fresh drafts are not searched */
    :: number == 1 ->                               /* insert_one: a transaction of one statement */
        if
        :: is_lost -> goto stopped
        :: atomic {                                 /* even if the client has given up */
            inserted == NONE ->
            if
            :: state == pending || state == failed -> goto stopped   /* a conflict with the repeat */
#ifndef LATE_STATEMENT
            :: state == over -> goto stopped                         /* `finished` has it: nothing is inserted */
#endif
            :: else -> expect(alive, !was_over); state = pending; act(1)
            fi
           }
        fi;
        goto told
    fi;
    if
    :: atomic { number > 1 && state != absent -> goto told }         /* `jobs` and `finished` are read */
    :: number == 1 || state == absent
    fi;
    if
    :: is_lost -> goto stopped
    :: atomic {                                     /* insert waits for a try that has inserted the id */
        inserted == NONE ->
        if
        :: state == pending || state == failed -> goto told          /* a conflict: the job exists */
        :: else -> inserted = number
        fi
       }
    fi;
#ifndef NO_SECOND_READ
    if
    :: atomic { was_over -> rollback(); goto told }                  /* delete_resurrected */
    :: !was_over
    fi;
#endif
    if
    :: atomic { is_lost -> rollback() }; goto stopped
    :: !is_lost                                     /* the client sends COMMIT */
    fi;
    if
    :: atomic { is_lost -> rollback() }; goto stopped
    :: atomic {
        true;
        expect(alive, !was_over);
        rollback(); state = pending;
        act(1)
       }
    fi;
told:
    atomic { true -> tell(1) };
stopped:
    skip
}

proctype client() {
    do
    :: atomic {
        answer == NONE && tries < TRIES ->
        tries++;                                    /* the connection of an earlier try is lost */
        if
        :: verb == resume -> run resuming(tries)
        :: else -> run enqueuing(tries)
        fi
       }
    :: answer != NONE || tries == TRIES -> break
    od
}

/* A worker whose attempt fails or succeeds, and another operator who resumes the job. */
proctype rival() {
    byte steps;
end:
    do
    :: atomic { state == pending && row == NONE && steps < 3 -> state = failed; steps++ }
    :: atomic { state == pending && row == NONE && steps < 3 -> state = over; was_over = true; steps++ }
    :: atomic { state == failed && row == NONE && steps < 3 -> state = pending; resumes++; steps++ }
    od
}

proctype judge() {
end:
    timeout;
    expect(answered, answer != NONE)
}

init {
    atomic {
        if
        :: verb = resume; state = failed
        :: verb = enqueue; state = absent
        fi;
        run client(); run rival(); run judge()
    }
}
