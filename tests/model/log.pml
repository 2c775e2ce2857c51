/*
 * The log protocol for spin: seal, fail-over, fill and reconfiguration (docs/model.md).
 *
 * A process is a client or a changer of the layout; a store operation is one step, since an object
 * class runs its methods one at a time. Beside each step stands the function that it follows.
 * A client that dies just takes no further step, which is among the executions of every process.
 *
 * Definitions choose who takes part, and break one rule or another: docs/model.md lists these
 * variants, each of which must violate an assertion.
 * The word after an assertion names the property; tests/model holds the variants to it.
 */

#ifndef APPENDERS
#define APPENDERS 2
#endif
#ifndef READERS
#define READERS 1
#endif
#ifndef EPOCHS
#define EPOCHS 3            /* the log is created in epoch 1; changes take the next ones */
#endif
#ifndef POSITIONS
#define POSITIONS 3
#endif
/* SECOND: what another one wants at the same time. FULL: the live stripe may be found full. */
#ifndef FIRST
#define FIRST TAKE_OVER     /* what the first changer wants, see `changer` */
#endif

#define NONE 255            /* a sequencer that does not hand out positions in an epoch */
#define UNWRITTEN 0
#define JUNK 1              /* what a fill stores */
#define FIRST_ID 2          /* append ids: one append per appender */

#define MAX(a, b) ((a) > (b) -> (a) : (b))

/* The first stripe has two objects, later ones have one: a change of width. A stripe's id is the
 * epoch in which it was made; `objects` and `cell` are indexed by it. */
#define WIDTH(stripe) ((stripe) == 1 -> 2 : 1)
#define OBJECT(stripe, position) ((stripe) * 2 + ((stripe) == 1 -> (position) % 2 : 0))
#define CELL(stripe, position) cell[(stripe) * POSITIONS + (position)]

#ifdef REACH
/* Prints once that the search came here; the tests want to see every one of them. */
#define reached(what) c_code { static int once; if (!once++) printf("reached: " what "\n"); }
#else
#define reached(what) skip
#endif

mtype = { OK, STALE_EPOCH, READ_ONLY, NOT_WRITTEN, INVALID_EPOCH, MISSING };
mtype = { TAKE_OVER, DROP, RECONFIGURE };

/* Stripe objects (cls_zlog/stripe/header.h): epoch, 0 where there is no object, and what is taken. */
byte epoch_of[(EPOCHS + 1) * 2];
byte taken[(EPOCHS + 1) * 2];           /* one past the highest position, 0: none */
byte cell[(EPOCHS + 1) * POSITIONS];

/* The head object (cls_zlog/head/head_state.h), with its views by epoch and stripes by id. */
byte counter = 1;
byte newest = 1;
byte tail_floor;
byte live[EPOCHS + 1];
bool named[EPOCHS + 1];                 /* whether the view names a sequencer */
byte start[EPOCHS + 1];
byte before[EPOCHS + 1];                /* the stripe that ended where this one starts; 0: none */

/* Sequencers: what is handed out next, by the epoch of the activation (seqr/machine/machine.py). One that
 * was replaced never stops. */
byte next[EPOCHS + 1];

/* The write that each appender sent last; librados may send it again, and deliver it late. */
byte sent_position[APPENDERS];
byte sent_epoch[APPENDERS];

/* What only the assertions know. */
byte settled[POSITIONS];                /* what a position came to be, wherever it is stored */
byte acknowledged;                      /* one past the highest acknowledged position */
byte shown;                             /* the highest tail that any client was told */
byte fence[EPOCHS + 1];                 /* by stripe: the last view that kept or ended it */

/* zlog/_positions/positions.py Positions._scan(): where a look at the objects begins. */
#ifdef SCAN_WITHOUT_FLOOR
#define SCAN_START(view) start[live[view]]
#else
#define SCAN_START(view) MAX(start[live[view]], tail_floor)
#endif

/* What a method answered, between its step and what its caller makes of it: 0 elsewhere. */
mtype code;
#define answered(what) d_step { code == what -> code = 0 }
#define refused d_step { code != OK -> code = 0 }

/* Scratch, used within a d_step only, so that it need not be part of a state. A search by breadth,
 * which finds the shortest way to an error, takes no hidden variables. */
#ifdef BREADTH
byte object, stripe, value, i;
#else
hidden byte object, stripe, value, i;
#endif

/* zlog/_layout/layout.py Layout.stripe_of: the stripe that holds a position, in a view. */
inline find_stripe(view, position) {
    stripe = live[view];
    do
    :: start[stripe] > position -> stripe = before[stripe]
    :: else -> break
    od
}

/* What a stripe object goes through when a position is written or filled. */
inline settle(position, with, tag) {
    assert(tag >= epoch_of[object] && tag >= fence[stripe]);       /* FENCING */
    assert(CELL(stripe, position) == UNWRITTEN);                   /* WRITE-ONCE */
    assert(settled[position] == UNWRITTEN);                        /* SETTLED */
    i = 0;
    do
    :: i < POSITIONS -> assert(with == JUNK || settled[i] != with); i++    /* UNIQUE */
    :: else -> break
    od;
    CELL(stripe, position) = with;
    settled[position] = with;
    taken[object] = MAX(taken[object], position + 1)
}

/* cls_zlog/stripe/write.cc write(): identity before epoch, epoch before READ_ONLY. */
inline write(view, position, id) {
    find_stripe(view, position);
    object = OBJECT(stripe, position);
    value = CELL(stripe, position);
    if
    :: epoch_of[object] == 0 -> code = MISSING
#ifdef EPOCH_BEFORE_IDENTITY
    :: epoch_of[object] != 0 && view < epoch_of[object] -> code = STALE_EPOCH
    :: epoch_of[object] != 0 && view >= epoch_of[object] && value == id -> code = OK
#elif !defined(RETRY_WITHOUT_ID)
    :: epoch_of[object] != 0 && value == id ->
        if
        :: view < epoch_of[object] -> reached("an entry is found by its id behind a seal")
        :: else -> reached("an entry is found by its id on a retry")
        fi;
        code = OK
#endif
    :: else ->
        if
#ifndef WRITE_IGNORES_EPOCH
        :: view < epoch_of[object] -> code = STALE_EPOCH
#endif
        :: else ->
            if
            :: value != UNWRITTEN -> code = READ_ONLY
            :: else -> settle(position, id, view); code = OK
            fi
        fi
    fi
}

/* cls_zlog/stripe/write.cc fill(): idempotent on junk. */
inline fill(view, position) {
    find_stripe(view, position);
    object = OBJECT(stripe, position);
    value = CELL(stripe, position);
    if
    :: epoch_of[object] == 0 -> code = MISSING
#ifndef FILL_IGNORES_EPOCH
    :: epoch_of[object] != 0 && view < epoch_of[object] -> code = STALE_EPOCH
#endif
    :: else ->
        if
#ifndef FILL_OVERWRITES
        :: value >= FIRST_ID -> code = READ_ONLY
#else
        :: value >= FIRST_ID -> settle(position, JUNK, view); code = OK
#endif
        :: value == JUNK -> code = OK
        :: value == UNWRITTEN -> settle(position, JUNK, view); code = OK;
            reached("a hole is filled");
            if
            :: stripe != live[newest] -> reached("a hole of an ended stripe is filled")
            :: else
            fi
        fi
    fi
}

/* cls_zlog/stripe/read.cc read(): one position, under the epoch guard. */
inline read(view, position) {
    find_stripe(view, position);
    object = OBJECT(stripe, position);
    if
    :: epoch_of[object] == 0 -> code = MISSING
#ifndef READ_IGNORES_EPOCH
    :: epoch_of[object] != 0 && view < epoch_of[object] -> code = STALE_EPOCH
#endif
    :: else ->
        value = CELL(stripe, position);
        assert(value == settled[position]);                        /* AGREE */
        code = (value == UNWRITTEN -> NOT_WRITTEN : OK)
    fi
}

/* cls_zlog/stripe/stripe.cc max_position(): of the live stripe's object of that index. */
inline max_position(view, index) {
    object = live[view] * 2 + index;
    code = (epoch_of[object] == 0 -> MISSING : (view < epoch_of[object] -> STALE_EPOCH : OK))
}

/* cls_zlog/stripe/stripe.cc seal(): fence and highest position in one step. */
inline seal(base, index, epoch) {
    object = live[base] * 2 + index;
    if
    :: epoch_of[object] == 0 -> code = MISSING
    :: epoch_of[object] >= epoch -> code = INVALID_EPOCH
    :: else ->
#ifdef ONE_OBJECT_UNSEALED
        epoch_of[object] = (index == 1 -> epoch_of[object] : epoch);
#else
        epoch_of[object] = epoch;
#endif
        code = OK
    fi
}

/* What a changer makes of it. */
inline answer_of_seal(index) {
    assert(code != MISSING);                                       /* LAYOUT */
    printf("changer %d: seals object %d with epoch %d: %e\n", _pid, index, epoch, code);
    if
    :: code == OK ->
#ifndef TAIL_BEFORE_SEAL
        tail = MAX(tail, taken[object])
#else
        skip
#endif
    :: else -> overtaken = true; reached("a seal is overtaken")
    fi;
    code = 0
}

/* cls_zlog/head/head.cc tail_raise(): refused once a higher epoch was taken. */
inline tail_raise(epoch, tail) {
    if
#ifndef FLOOR_RAISED_LATE
    :: epoch != counter -> code = STALE_EPOCH
#endif
    :: else -> tail_floor = MAX(tail_floor, tail); code = OK
    fi
}

/* cls_zlog/head/head.cc view_propose(): compare-and-swap on the base. `made` says whether the view ends
 * the live stripe and starts the one of its epoch; zlog/_layout/views.py _stripes() for what it lists. */
inline view_propose(base, epoch, tail, names, made) {
    if
    :: newest == epoch -> code = OK     /* the same proposal again, its reply lost */
    :: newest > epoch -> code = INVALID_EPOCH
#ifndef PROPOSE_WITHOUT_BASE
    :: newest < epoch && newest != base -> code = STALE_EPOCH
#endif
    :: else ->
        code = OK;
        assert(tail >= acknowledged && tail >= shown);             /* TAIL */
        i = 0;
        do
        :: i < POSITIONS -> assert(settled[i] == UNWRITTEN || i < tail); i++    /* TAIL */
        :: else -> break
        od;
        stripe = live[base];
        fence[stripe] = epoch;
        named[epoch] = names;
        if
        :: made ->
            assert(epoch_of[epoch * 2] != 0);                      /* LAYOUT */
            live[epoch] = epoch;
            start[epoch] = tail;
            before[epoch] = (start[stripe] < tail -> stripe : before[stripe]);
            fence[epoch] = epoch;
            if
            :: start[stripe] < tail -> reached("a stripe ends and the next one starts")
            :: else -> reached("an empty stripe is replaced")
            fi
        :: else -> live[epoch] = stripe
        fi;
        newest = epoch
    fi
}

/* zlog/_append/append.py: one append, from its call to its acknowledgement. */
proctype appender(byte me) {
    byte view = 1;
    byte position, least;

    /* The call. What was acknowledged or shown before it lies below what it will get. */
    d_step { least = MAX(shown, acknowledged) };

    /* zlog/_positions/positions.py Positions.grant(). */
end_grant:
    if
    :: newest > view -> view = newest; goto end_grant      /* it may hear of that at any time */
    :: d_step { named[view] && next[view] < POSITIONS ->   /* seqr/native: NEXT */
            position = next[view];
            next[view]++;
            printf("appender %d: the sequencer of epoch %d grants position %d\n", me, view,
                position)
        }
    :: !named[view] -> goto scan
    fi;
send:
    atomic { sent_position[me] = position; sent_epoch[me] = view };

    /* _Round._take_answers(). */
    atomic {
        d_step {
            write(view, position, FIRST_ID + me);
            printf("appender %d: writes position %d in epoch %d: %e\n", me, position, view, code)
        };
        if
        :: answered(OK) -> goto done
        :: answered(READ_ONLY) -> d_step { reached("an appender is refused and asks again") };
            goto end_grant
        :: answered(STALE_EPOCH) -> d_step { reached("an appender is fenced") }; goto end_advance
        :: answered(MISSING) -> assert(newest != view); goto end_advance     /* LAYOUT */
        fi
    };

    /* zlog/_layout/layout.py Layout.advance(): wait for the view of the client that sealed, or bring one in, which
     * is what a changer does. */
end_advance:
    atomic {
        newest > view -> view = newest;
#ifdef POSITION_REUSED
        goto send
#else
        goto end_grant
#endif
    };

    /* Positions._scan(whole=True): the slow way, without a sequencer. */
scan:
    atomic { view = newest; position = SCAN_START(view) };
    if
    :: named[view] -> goto end_grant
    :: else
    fi;
    atomic {
        d_step { max_position(view, 0); position = MAX(position, taken[object]) };
        if
        :: answered(OK)
        :: refused -> goto end_advance
        fi
    };
    if
    :: WIDTH(live[view]) == 2 ->
        atomic {
            d_step { max_position(view, 1); position = MAX(position, taken[object]) };
            if
            :: answered(OK)
            :: refused -> goto end_advance
            fi
        }
    :: else
    fi;
    if
    :: position < POSITIONS -> goto send
    :: else -> goto end_full
    fi;

done:
    atomic {
        assert(settled[position] == FIRST_ID + me);                /* DURABLE */
        assert(position >= least);                                 /* ORDER */
        acknowledged = MAX(acknowledged, position + 1);
        if
        :: view > 1 && named[view] -> reached("an append is acknowledged after a fail-over")
        :: view > 1 && !named[view] -> reached("an append is acknowledged the slow way")
        :: else
        fi;
        if
        :: live[view] > 1 -> reached("an append is acknowledged in a new stripe")
        :: else
        fi;
        view = 0; position = 0; least = 0; sent_epoch[me] = 0; sent_position[me] = 0
    };
end_full:
    false                   /* acknowledged, or at the end of this short log */
}

/* The write that an appender sent last is carried out once more, or at all, at any later time, and
 * its reply is lost: what a time-out leaves, and a connection that breaks. */
proctype network() {
end_idle:
    do
    :: d_step { sent_epoch[0] != 0 ->
            write(sent_epoch[0], sent_position[0], FIRST_ID);
            printf("network: writes position %d in epoch %d for appender 0: %e, reply lost\n",
                sent_position[0], sent_epoch[0], code); code = 0
        }
#if APPENDERS > 1
    :: d_step { sent_epoch[1] != 0 ->
            write(sent_epoch[1], sent_position[1], FIRST_ID + 1);
            printf("network: writes position %d in epoch %d for appender 1: %e, reply lost\n",
                sent_position[1], sent_epoch[1], code); code = 0
        }
#endif
    od
}

/* zlog/_positions/positions.py Positions.tail() and zlog/_read/read.py Reader: asks for the checked tail, reads,
 * and fills what is unwritten, in any order, over and over. */
proctype reader(byte me) {
    byte view = 1;
    byte tail, least, position;

    /* Positions._quick_tail(): the sequencer's, if it serves this view. */
end_idle:
    if
    :: newest > view -> view = newest; goto end_idle       /* Layout.refresh() */
    :: d_step { next[view] != NONE -> tail = next[view]; least = MAX(shown, acknowledged) }
    :: newest == view -> goto scan      /* there is no sequencer, or it is out of reach */
    :: goto look
    fi;
    atomic {
        d_step {
            tail_raise(view, tail);
            printf("reader %d: tail_raise(%d) in epoch %d: %e\n", me, tail, view, code)
        };
        if
        :: answered(OK) -> goto answer
        :: refused ->
            d_step { tail = 0; least = 0; reached("the tail of a replaced sequencer is refused") }
        fi
    };
end_stale:
    newest > view -> view = newest; goto end_idle;         /* Layout.advance() */

    /* Positions._scan(): the floor first, then the objects. Its answer needs no floor: it lies
     * above what is stored, and not above the floor otherwise. */
scan:
    atomic {
        view = newest;
        tail = SCAN_START(view);
        least = MAX(shown, acknowledged)
    };
    atomic {
        d_step { max_position(view, 0); tail = MAX(tail, taken[object]) };
        if
        :: answered(OK)
        :: refused -> d_step { tail = 0; least = 0 }; goto end_stale
        fi
    };
    if
    :: WIDTH(live[view]) == 2 ->
        atomic {
            d_step { max_position(view, 1); tail = MAX(tail, taken[object]) };
            if
            :: answered(OK)
            :: refused -> d_step { tail = 0; least = 0 }; goto end_stale
            fi
        }
    :: else
    fi;
answer:
    atomic {
        assert(tail >= least);                                     /* TAIL */
        printf("reader %d: the tail is %d\n", me, tail);
        if
        :: tail > acknowledged -> reached("a tail lies above all that was acknowledged")
        :: else
        fi;
        shown = MAX(shown, tail);
        tail = 0;
        least = 0
    };
    goto end_idle;

    /* Reader.read(), of any position; settle() fills what is unwritten below a tail that was
     * shown, to this reader or another. */
look:
    atomic {
        select(position : 0 .. POSITIONS - 1); skip;
        d_step {
            read(view, position);
            printf("reader %d: reads position %d in epoch %d: %e\n", me, position, view, code);
            if
            :: code == MISSING -> assert(newest != view)           /* DURABLE */
            :: code == OK && value >= FIRST_ID && stripe != live[newest] ->
                reached("an entry of an ended stripe is read")
            :: else
            fi
        };
        if
        :: d_step { code == NOT_WRITTEN && position < shown -> code = 0 }
        :: d_step { code != NOT_WRITTEN || position >= shown -> code = 0; position = 0 };
            goto end_idle
        fi
    };
    d_step {
        fill(view, position);
        printf("reader %d: fills position %d in epoch %d: %e\n", me, position, view, code);
        if
        :: code == READ_ONLY -> reached("a fill comes after the write")
        :: code == STALE_EPOCH -> reached("a fill is fenced")
        :: else
        fi;
        code = 0;
        position = 0
    };
    goto end_idle
}

/* zlog/_layout/views.py change_view(): epoch, seal, view, until one is in; the order is the protocol.
 *
 *   TAKE_OVER    a sequencer starts, or takes the place of another
 *   DROP         a client goes on without the sequencer
 *   RECONFIGURE  the live stripe ends and the next one starts
 */
proctype changer(mtype wants) {
    byte base, epoch, tail, left, lost;
    bool made, overtaken, names;

    /* _change(): the newest view, from Head.read(). */
end_begin:
    atomic {
        base = newest;
#ifdef FLOOR_READ_EARLY
        tail = tail_floor;
#endif
        names = (wants == TAKE_OVER -> 1 : (wants == DROP -> 0 : named[base]))
    };

    /* _try_change(). cls_zlog/head/head.cc epoch_next() returns the floor, which no earlier epoch can
     * raise from then on. */
end_epoch_next:
    d_step { counter < EPOCHS ->
        counter++;
        epoch = counter;
#if !defined(FLOOR_IGNORED) && !defined(FLOOR_READ_EARLY)
        tail = tail_floor;
#endif
        if
        :: tail > taken[live[base] * 2] && tail > taken[live[base] * 2 + 1] ->
            reached("a tail floor lies above all that is stored")
        :: else
        fi;
        tail = MAX(tail, start[live[base]]);
        left = (WIDTH(live[base]) == 2 -> 3 : 1);
        printf("changer %d: takes epoch %d on view %d\n", _pid, epoch, base)
    };
#ifndef MADE_AFTERWARDS
    if                                  /* _Attempt.make(), before the writers are stopped */
    :: wants == RECONFIGURE -> d_step { epoch_of[epoch * 2] = epoch; made = true }
    :: else
    fi;
#else
    made = (wants == RECONFIGURE);
#endif
#ifdef TAIL_BEFORE_SEAL
    d_step {
        tail = MAX(tail, taken[live[base] * 2]);
        tail = MAX(tail, taken[live[base] * 2 + 1])
    };
#endif

    /* zlog/_layout/stripe_objects.py seal(): all objects at the same time; each tells its highest. */
seal_next:
    if
    :: (left & 1) ->
        d_step { seal(base, 0, epoch); answer_of_seal(0); left = left & 2 };
        goto seal_next
    :: (left & 2) ->
        d_step { seal(base, 1, epoch); answer_of_seal(1); left = left & 1 };
        goto seal_next
    :: left == 0 && overtaken -> goto again
    :: left == 0 && !overtaken
    fi;
#ifdef FULL
    if                                  /* the seals tell that the live stripe is full */
    :: !made -> d_step { epoch_of[epoch * 2] = epoch; made = true }
    :: true
    fi;
#endif

propose:
    atomic {
        d_step {
            view_propose(base, epoch, tail, names, made);
            printf("changer %d: proposes view %d on %d with tail %d: %e\n", _pid, epoch, base, tail,
                code)
        };
        if
        :: answered(OK) -> goto effect
        :: answered(OK) -> goto propose   /* the reply is lost, and the request sent again */
        :: refused ->
            d_step {
                if
                :: newest < epoch -> reached("a change is refused for its base")
                :: else -> reached("a change comes too late")
                fi
            };
            goto again
        fi
    };

    /* Another one is ahead. What was made is remembered; the edit may want nothing any more. */
again:
    atomic {
        lost = (made -> epoch : lost);
        base = 0; epoch = 0; tail = 0; made = false; overtaken = false; names = 0
    };
    if
    :: goto end_begin
    :: goto discard
    fi;

effect:
    atomic {
#ifdef MADE_AFTERWARDS
        epoch_of[epoch * 2] = (made -> epoch : epoch_of[epoch * 2]);
#endif
        if
        :: names -> next[epoch] = tail      /* Machine.activated(), or activate_shared() */
        :: else
        fi;
        base = 0; epoch = 0; tail = 0; made = false; names = 0
    };

    /* zlog/_layout/reclaim.py discard(): unless the stripe is one of the log's after all. */
discard:
    if
    :: lost == 0 -> goto end_done
    :: else
    fi;
    atomic {
        d_step {
            stripe = live[newest];
            do
            :: stripe > lost -> stripe = before[stripe]
            :: else -> break
            od;
            if
#ifndef DISCARD_UNCHECKED
            :: stripe == lost -> lost = 0; reached("a stripe thought lost is in use")
#endif
            :: else
            fi
        };
        if
        :: lost == 0 -> goto end_done
        :: else
        fi
    };
    d_step { epoch_of[lost * 2] = 0; reached("a stripe made in vain is removed") };
end_done:
    false
}

init {
    d_step {
        i = 2;
        do
        :: i <= EPOCHS -> next[i] = NONE; i++
        :: else -> break
        od;
        live[1] = 1;
        named[1] = true;
        fence[1] = 1;
        epoch_of[2] = 1;
        epoch_of[3] = 1
    };
    atomic {
        run appender(0);
#if APPENDERS > 1
        run appender(1);
#endif
        run network();
#if READERS > 0
        run reader(0);
#endif
#if READERS > 1
        run reader(1);
#endif
        run changer(FIRST);
#ifdef SECOND
        run changer(SECOND)
#endif
    }
}
