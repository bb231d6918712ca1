/* orders.pml - who goes to sleep, or takes back, while the other has something for it: the store-load pairs.
 *
 * Each of two threads stores what it has to say and then looks at what the other says; at least one must see the other.
 * Stores go through a buffer (first in, first out) that empties at any instant. A seq_cst load waits until the seq_cst
 * stores before it have left the buffer, as C11 demands, x86 does at the store and ARMv8 does at the load; any other load
 * goes past the buffer. Loads of a thread are made in their order, and none is of a word that it stores itself.
 * Numbers are those in the sources. Choose one:
 *   -DSLEEP   K1, K2: an end of shm sleeps (shm.c set_sleeping), the other kicks (wf_shm_conn_kick)
 *   -DTHREAD  W2: the progress thread sleeps (thread_sleep), the owner gives a command (wf_progress_command)
 *   -DOWNER   W1: the owner sleeps (sleep_for_thread), the thread clears a word or fails (wake_owner)
 *   -DREVOKE  S4: an end breaks off and takes a published PUT back (wf_shm_give_up), the other consumes it (ref_finish)
 * -DM_...: seeded mistakes, see README.md: that operation is relaxed, or left out. "P:" marks a property. */
#ifndef N
#define N 2               /* cells, commands or waits */
#endif
#define BUFFERED 4

chan buffer[2] = [BUFFERED] of { byte, byte, bit };
byte mem[4];
byte strong[2];           /* seq_cst stores in the buffer  */
byte wakes, got, said;    /* wakes: of the descriptor      */
bit  taken_back, delivered, over[2];

#define STORE(me,x,v,sc)  atomic { nfull(buffer[me]) -> buffer[me]!x,v,sc; strong[me] = strong[me] + sc }
#define LOAD(me,x,sc,out) atomic { !(sc) || strong[me] == 0 -> out = mem[x] }
#define XCHG(me,x,v,sc,out) atomic { !(sc) || empty(buffer[me]) -> out = mem[x]; mem[x] = v }
#define SIGNAL wakes = 1
#define AWAIT  atomic { wakes > 0 -> wakes = 0 }

active [2] proctype leaves() { byte x, v; bit sc; byte me = _pid % 2;
end:	do
	:: atomic { buffer[me]?x,v,sc -> mem[x] = v; strong[me] = strong[me] - sc; x = 0; v = 0; sc = 0 }
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
#define TAIL 0
#define COMMANDS 1
#define SLEEPS 2
active proctype thread() { byte seen, r;
	do
	:: got == N -> break
	:: got < N ->
#ifndef M_SEEN            /* read after the commands: what a relaxed load may be */
		LOAD(0, COMMANDS, 1, seen);
#endif
		LOAD(0, TAIL, 0, r);                          /* R2 */
#ifdef M_SEEN
		LOAD(0, COMMANDS, 1, seen);
#endif
		if
		:: r > got -> got = r
		:: r == got ->
			STORE(0, SLEEPS, 1, S1);              /* W2 */
			LOAD(0, COMMANDS, L1, r);             /* W2 */
			if :: r == seen -> AWAIT :: r != seen fi;
			STORE(0, SLEEPS, 0, 0);
			wakes = 0                             /* drain_fd */
		fi
	od; over[0] = 1 }

active proctype owner() { byte r;
	do
	:: said == N -> break
	:: said < N -> said++;
		STORE(1, TAIL, said, 0);                      /* R2 */
		STORE(1, COMMANDS, said, S2);                 /* W2 */
		LOAD(1, SLEEPS, L2, r);                       /* W2 */
		if :: r != 0 -> SIGNAL :: r == 0 fi
	od; over[1] = 1 }
#endif

#ifdef OWNER
#define CLEARED 0         /* how often: the word of wait n is clear when it is n or more */
#define WAITS 1           /* the number of the wait; 0: none */
#define GONE 3            /* N: the session's failure, which ends the last wait */
active proctype owner() { byte r, status;
	got = 1;
	do
	:: got > N -> break
	:: got <= N ->
		STORE(0, WAITS, got, S1);                     /* W1 */
		LOAD(0, CLEARED, L1, r);                      /* W1 */
		LOAD(0, GONE, L1, status);                    /* F1, W1 */
		if
		:: r < got && status == 0 -> AWAIT
		:: else
		fi;
		STORE(0, WAITS, 0, 0);
		wakes = 0;                                    /* drain_fd */
		LOAD(0, CLEARED, 0, r); LOAD(0, GONE, 0, status);
		if :: r >= got || status != 0 -> got++ :: else fi
	od; over[0] = 1 }

active proctype thread() { byte r;
	do
	:: said == N -> break
	:: said < N -> said++;
		if
		:: said < N -> STORE(1, CLEARED, said, S2)    /* B1, W1 */
		:: said == N -> STORE(1, GONE, 1, S2)         /* F1, W1 */
		fi;
		LOAD(1, WAITS, L2, r);                        /* W1: and its word is clear, or it has failed */
		if :: r != 0 && (r <= said || said == N) -> SIGNAL :: else fi
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
