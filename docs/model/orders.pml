/* orders.pml - who goes to sleep, or takes back, while the other has something for it: the store-load pairs.
 *
 * Each of two threads stores what it has to say and then looks at what the other says; at least one must see the other.
 * Stores go through a buffer (first in, first out) that empties at any instant. A seq_cst load waits until the seq_cst
 * stores before it have left the buffer, as C11 demands, x86 does at the store and ARMv8 does at the load; any other load
 * goes past the buffer. Loads of a thread are made in their order, and none is of a word that it stores itself.
 * Numbers are those in the sources. Choose one:
 *   -DSLEEP   K1, K2: an end of shm sleeps (shm.c raise_flags), the other kicks (wf_shm_conn_kick)
 *   -DTHREAD  D1: the progress thread lets go of the core and sleeps (rest), the owner gives a command (wf_progress_command)
 *   -DOWNER   D2: the owner sleeps until the core is free (claim_after_sleep), the thread lets go of it (let_go, rest)
 *   -DASIDE   D3: the thread sleeps while the owner drives (claim_or_stand_back), the owner leaves work behind (hand_over)
 *   -DREVOKE  S4: an end breaks off and takes a published PUT back (wf_shm_give_up), the other consumes it (ref_finish)
 * -DM_...: seeded mistakes, see README.md: that operation is relaxed, or left out. "P:" marks a property. */
#ifndef N
#define N 2               /* cells, commands or waits */
#endif
#define BUFFERED 4

chan buffer[2] = [BUFFERED] of { byte, byte, bit };
byte mem[4];
byte strong[2];           /* seq_cst stores in the buffer  */
byte own[2];              /* stores of DRIVER in the buffer */
byte wakes, got, said;    /* wakes: of the descriptor      */
bit  taken_back, delivered, over[2];

#define STORE(me,x,v,sc)  atomic { nfull(buffer[me]) -> buffer[me]!x,v,sc; strong[me] = strong[me] + sc }
#define LOAD(me,x,sc,out) atomic { !(sc) || strong[me] == 0 -> out = mem[x] }
#define XCHG(me,x,v,sc,out) atomic { !(sc) || empty(buffer[me]) -> out = mem[x]; mem[x] = v }
#define SIGNAL wakes = 1
#define AWAIT  atomic { wakes > 0 -> wakes = 0 }

#if defined(THREAD) || defined(OWNER) || defined(ASIDE)
#define DRIVER 0          /* 0: nobody; me + 1                         */
/* A compare-and-exchange of DRIVER. Relaxed, it goes past stores of other words. */
#define CLAIM(me,sc,ok) atomic { own[me] == 0 && (!(sc) || strong[me] == 0) -> ok = (mem[DRIVER] == 0); \
	if :: ok -> mem[DRIVER] = me + 1 :: else fi }
#define LET_GO(me,sc) atomic { own[me]++; STORE(me,DRIVER,0,sc) }
#endif

active [2] proctype leaves() { byte x, v; bit sc; byte me = _pid % 2;
end:	do
	:: atomic { buffer[me]?x,v,sc -> mem[x] = v; strong[me] = strong[me] - sc;
#ifdef DRIVER
		own[me] = own[me] - (x == DRIVER);
#endif
		x = 0; v = 0; sc = 0 }
	od }

#ifdef M_STORE            /* of who goes to sleep, or consumes          */
#define S1 0
#else
#define S1 1
#endif
#ifdef M_LOOK             /* its look at what the other says            */
#define L1 0
#else
#define L1 1
#endif
#ifdef M_SAY              /* of who has something, or breaks off        */
#define S2 0
#else
#define S2 1
#endif
#ifdef M_SEE              /* its look at whether the other sleeps       */
#define L2 0
#else
#define L2 1
#endif
#ifdef M_TAKE             /* its exchange of the flag                   */
#define X2 0
#else
#define X2 1
#endif

#ifdef SLEEP
#define SEQ 0
#define BELL 1
#define SLEEPING 2
active proctype sleeper() { byte r;
	do
	:: got == N -> break
	:: got < N ->
		STORE(0, SLEEPING, 1, S1);                    /* K1 */
#ifndef M_NOLOOK
		LOAD(0, BELL, L1, r);                         /* K2 */
#endif
		LOAD(0, SEQ, 0, r);                           /* the poll behind arm, S1 */
		if
		:: r > got -> got = r
		:: r == got -> AWAIT
		fi;
		if :: STORE(0, SLEEPING, 0, S1) :: skip fi    /* not where it arms again at once */
	od; over[0] = 1 }

active proctype kicker() { byte r;
	do
	:: said == N -> break
	:: said < N -> said++;
		STORE(1, SEQ, said, 0);                       /* S1 */
		STORE(1, BELL, said, S2);                     /* K1, K2 */
		LOAD(1, SLEEPING, L2, r);
		if
		:: r != 0 -> XCHG(1, SLEEPING, 0, X2, r); if :: r != 0 -> SIGNAL :: r == 0 fi
		:: r == 0
		fi
	od; over[1] = 1 }
#endif

#ifdef THREAD
#define TAIL 1
#define COMMANDS 2
active proctype thread() { byte seen, r; bit mine;
	do
	:: got == N -> break
	:: got < N ->
#ifndef M_SEEN            /* read after the commands: what a relaxed load may be */
		LOAD(0, COMMANDS, 1, seen);
#endif
		CLAIM(0, 1, mine);
		if
		:: !mine -> if :: AWAIT :: got == N -> skip fi /* the owner drives, and runs what it finds */
		:: mine ->
			LOAD(0, TAIL, 0, r);                  /* R2 */
#ifdef M_SEEN
			LOAD(0, COMMANDS, 1, seen);
#endif
			if
			:: r > got -> got = r; LET_GO(0, 1)
			:: r <= got ->
				LET_GO(0, S1);                /* D1 */
				LOAD(0, COMMANDS, L1, r);     /* D1 */
				if
				:: r == seen -> if :: AWAIT :: got == N -> skip fi
				:: r != seen
				fi
			fi
		fi
	od; over[0] = 1 }

active proctype owner() { bit mine;
	do
	:: said == N -> break
	:: said < N -> said++;
		CLAIM(1, 1, mine);
		if
		:: mine -> got = said; LET_GO(1, 1)           /* it runs the ring's and its own */
		:: !mine ->
			STORE(1, TAIL, said, 0);              /* R2 */
			STORE(1, COMMANDS, said, S2);         /* D1 */
			CLAIM(1, L2, mine);                   /* D1 */
			if :: mine -> got = said; LET_GO(1, 1) :: !mine fi
		fi
	od; over[1] = 1 }
#endif

#ifdef OWNER
#define WANTED 1
active proctype owner() { bit mine;
	do
	:: got == N -> break
	:: got < N ->
		STORE(0, WANTED, 1, S1);                      /* D2 */
		CLAIM(0, L1, mine);                           /* D2 */
		if :: mine :: !mine -> AWAIT fi;
		STORE(0, WANTED, 0, 0);
		wakes = 0;                                    /* drain_fd */
		if :: mine -> got++; LET_GO(0, 1) :: !mine fi
	od; over[0] = 1 }

active proctype thread() { byte r; bit mine;              /* it has N + 1 turns, and then sleeps for ever */
	do
	:: said > N -> break
	:: said <= N ->
		CLAIM(1, 1, mine);
		if
		:: !mine
		:: mine -> said++;
			LET_GO(1, S2);                        /* D2 */
			LOAD(1, WANTED, L2, r);               /* D2 */
			if :: r != 0 -> SIGNAL :: r == 0 fi
		fi
	od; over[1] = 1 }
#endif

#ifdef ASIDE
#define UNTIL 1           /* 1: the thread sleeps for long              */
#define WORK 2            /* that owners left, and that is due soon     */
active proctype thread() { byte r; bit mine;
	do
	:: got == N -> break
	:: got < N ->
		CLAIM(0, 1, mine);
		if
		:: mine
		:: !mine ->
			STORE(0, UNTIL, 1, S1);               /* D3 */
			CLAIM(0, L1, mine);                   /* D3 */
			if :: mine :: !mine -> AWAIT fi
		fi;
		if
		:: mine ->
			LOAD(0, WORK, 0, r); got = r;
			STORE(0, UNTIL, 0, 0);                /* it is about to sleep until that is due */
			LET_GO(0, 1)
		:: !mine
		fi
	od; over[0] = 1 }

active proctype owner() { byte r; bit mine;
	do
	:: said == N -> break
	:: said < N ->
		CLAIM(1, 1, mine);
		if
		:: mine -> said++;
			STORE(1, WORK, said, 0);
			LET_GO(1, S2);                        /* D3 */
			LOAD(1, UNTIL, L2, r);                /* D3 */
			if :: r != 0 -> SIGNAL :: r == 0 fi
		:: !mine
		fi
	od; over[1] = 1 }
#endif

#ifdef REVOKE
#define CONSUMED 0
#define CLOSING 1
active proctype consumer() { byte r;
	STORE(0, CONSUMED, 1, S1);                            /* S4: all of it has been read */
	LOAD(0, CLOSING, L1, r);                              /* S4 */
	if :: r == 0 -> delivered = 1 :: r != 0 fi;
	over[0] = 1 }

active proctype closer() { byte r;
	STORE(1, CLOSING, 1, S2);                             /* S4 */
	LOAD(1, CONSUMED, L2, r);                             /* S4 */
	if :: r == 0 -> taken_back = 1 :: r != 0 fi;          /* LOST: its memory may be written */
	over[1] = 1 }
#endif

active proctype judge() {
	timeout -> assert(over[0] && over[1]);                /* P: nobody sleeps while the other has something for it */
	assert(!(taken_back && delivered)) }                  /* P: no PUT is delivered that was taken back */
