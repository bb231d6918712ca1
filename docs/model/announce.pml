/* announce.pml - the inbox of one lane that has room for the gradients of ROOM slices of every trainer, as built.
 *
 * NT trainers push NS slices per step in any order of their own, STEPS steps. A push is announced; the lane holds a slice,
 * and lets all push it, when every member has announced it and fewer than ROOM are held; it is held until it is applied.
 * A push is PUT into any of the WIN buffers of its trainer's window. A window that is full of pushes that wait for others
 * is copied aside and its buffers are given back; what may lie aside is ROOM * NT chunks. FAULTS paths break at any
 * instant: what was PUT arrives or not, and at DOWN the window is copied aside and what was announced is void. When the
 * path is UP again the trainer announces what RESUME lacks, and what is held is allowed at once. Any trainer but the
 * first may be out of data when it has all its answers. -DM_...: seeded mistakes, see README.md. "P:" marks a property. */
#ifndef NT
#define NT 3
#endif
#ifndef NS
#define NS 3
#endif
#ifndef WIN
#define WIN 1
#endif
#ifndef ROOM
#define ROOM 2
#endif
#ifndef STEPS
#define STEPS 1
#endif
#ifndef FAULTS
#define FAULTS 2
#endif
#define X(t,s) ((t)*NS+(s))
#define HERE(t,s) (st[X(t,s)] == INWIN || st[X(t,s)] == ASIDE)
#ifdef M_NOOUT                /* who is out of data is waited for */
#define ISOUT(t) 0
#else
#define ISOUT(t) out[t]
#endif

#ifdef M_NOROOM               /* allowed as soon as all have announced it */
#define HASROOM 1
#else
#define HASROOM (nheld < ROOM)
#endif
#define ISREADY(t,s) (ISOUT(t) || st[X(t,s)] == SAID)
#define READY(s) (ISREADY(0,s) && ISREADY(1,s) && ISREADY(NT-1,s))
#ifdef M_SAYMAX               /* at most so many announcements that are not allowed */
#define MAYSAY(t) (said[t] < M_SAYMAX)
#else
#define MAYSAY(t) 1
#endif

mtype = { IDLE, SAID, GO, SENT, INWIN, ASIDE, UP, BROKEN };
mtype st[NT*NS] = IDLE;   /* announced; allowed; PUT; in the window; copied aside        */
byte step[NS] = 1, pushed[NT*NS];
byte used[NT];            /* buffers that the trainer takes for in use                   */
byte inwin[NT];           /* pushes in the window at the lane                            */
byte aside, nheld, faults;
#ifdef M_SAYMAX
byte said[NT];
#endif
mtype path[NT] = UP;      /* BROKEN: what was PUT may still arrive; IDLE: DOWN           */
bit  held[NS], out[NT], mayout;
bit  ok_;
hidden byte i_;

#ifdef M_SAYMAX
inline unsay(t) { said[t]-- }
#else
inline unsay(t) { skip }
#endif
inline put_aside(x) {     /* P: there is a chunk for it */
	assert(aside < ROOM * NT); aside++; st[x] = ASIDE }
inline park(t) {
	i_ = 0;
	do :: i_ < NS -> if :: st[X(t,i_)] == INWIN -> put_aside(X(t,i_)) :: else fi; i_++ :: else -> break od;
	inwin[t] = 0 }
inline all_said(s) {      /* every member, and there is one */
	ok_ = 1; i_ = 0;
	do :: i_ < NT -> if :: !ISOUT(i_) && st[X(i_,s)] != SAID -> ok_ = 0 :: else fi; i_++ :: else -> break od }
inline all_here(s) {
	ok_ = 1; i_ = 0;
	do :: i_ < NT -> if :: !ISOUT(i_) && !HERE(i_,s) -> ok_ = 0 :: else fi; i_++ :: else -> break od }
inline rests(t) {         /* it has all its answers, and begins no step */
	ok_ = 1; i_ = 0;
	do :: i_ < NS ->
		if :: st[X(t,i_)] != IDLE || pushed[X(t,i_)] >= step[i_] || step[i_] != step[0] -> ok_ = 0 :: else fi; i_++
	:: else -> break od }

proctype trainer(byte t; byte s) {
end:	do
	:: d_step { !out[t] && path[t] == UP && st[X(t,s)] == IDLE && pushed[X(t,s)] < step[s] && step[s] <= STEPS &&
			MAYSAY(t) ->
#ifdef M_SAYMAX
		said[t]++;
#endif
		pushed[X(t,s)] = step[s]; if :: held[s] -> st[X(t,s)] = GO :: else -> st[X(t,s)] = SAID fi }
	:: d_step { path[t] == UP && st[X(t,s)] == GO && used[t] < WIN -> used[t]++; st[X(t,s)] = SENT }
	od }

proctype window(byte t) {
end:	do
	:: d_step { path[t] != IDLE && st[X(t,0)] == SENT -> st[X(t,0)] = INWIN; inwin[t]++ }
#if NS > 1
	:: d_step { path[t] != IDLE && st[X(t,1)] == SENT -> st[X(t,1)] = INWIN; inwin[t]++ }
#endif
#if NS > 2
	:: d_step { path[t] != IDLE && st[X(t,2)] == SENT -> st[X(t,2)] = INWIN; inwin[t]++ }
#endif
#ifndef M_NOPARK              /* a full window waits */
	:: d_step { path[t] == UP && inwin[t] == WIN -> park(t); used[t] = used[t] - WIN }
#endif
	od }

proctype fate(byte t) {
end:	do
	:: d_step { faults > 0 && path[t] == UP -> faults--; path[t] = BROKEN }
	:: d_step { path[t] == BROKEN ->
		path[t] = IDLE; park(t); used[t] = 0; i_ = 0;
		do :: i_ < NS ->
			if :: st[X(t,i_)] == SAID || st[X(t,i_)] == GO || st[X(t,i_)] == SENT -> st[X(t,i_)] = IDLE;
#ifdef M_FREEONDOWN           /* a slice that has lost a push is held no more */
				if :: held[i_] -> held[i_] = 0; nheld-- :: else fi
#endif
			:: else fi; i_++
		:: else -> break od; i_ = 0 }
	:: d_step { path[t] == IDLE -> path[t] = UP; i_ = 0;   /* what RESUME lacks is announced again */
		do :: i_ < NS -> if :: st[X(t,i_)] == IDLE && pushed[X(t,i_)] == step[i_] -> pushed[X(t,i_)]-- :: else fi; i_++
		:: else -> break od; i_ = 0 }
	:: d_step { mayout && t > 0 && !out[t] && path[t] == UP -> rests(t); i_ = 0;
		if :: ok_ && step[0] <= STEPS -> out[t] = 1 :: else fi; ok_ = 0; mayout = 0 }
	od }

proctype lane(byte s) {
end:	do
#ifdef M_EACH                 /* room is given push by push */
	:: d_step { nheld < ROOM * NT && st[X(0,s)] == SAID -> nheld++; st[X(0,s)] = GO }
	:: d_step { nheld < ROOM * NT && st[X(1,s)] == SAID -> nheld++; st[X(1,s)] = GO }
#else
	:: d_step { !held[s] && step[s] <= STEPS && HASROOM && READY(s) -> all_said(s);
		if :: ok_ ->
			held[s] = 1; nheld++; i_ = 0;
			do :: i_ < NT -> if :: st[X(i_,s)] == SAID -> st[X(i_,s)] = GO; unsay(i_) :: else fi; i_++ :: else -> break od
		:: else fi; ok_ = 0; i_ = 0 }
#endif
	:: d_step { step[s] <= STEPS && (ISOUT(0) || HERE(0,s)) && (ISOUT(1) || HERE(1,s)) &&
		(ISOUT(NT-1) || HERE(NT-1,s)) -> all_here(s);
		if :: ok_ ->
			i_ = 0;
			do :: i_ < NT ->
				if :: st[X(i_,s)] == ASIDE -> aside--; st[X(i_,s)] = IDLE
				:: st[X(i_,s)] == INWIN -> inwin[i_]--; st[X(i_,s)] = IDLE;
					used[i_]--                    /* the answer says so */
				:: else fi; i_++
			:: else -> break od;
#if !defined(M_FREEONDOWN) && !defined(M_EACH)
			assert(held[s]);                              /* P: nothing comes that was not allowed */
#endif
#ifdef M_EACH
			nheld = nheld - NT
#endif
			if :: held[s] -> held[s] = 0; nheld-- :: else fi; step[s]++
		:: else fi; ok_ = 0; i_ = 0 }
	od }

proctype judge() {            /* P: no order of pushes and no bounded faults can block */
	timeout -> d_step { i_ = 0;
		do :: i_ < NS -> assert(step[i_] > STEPS); i_++ :: else -> break od;
		assert(nheld == 0 && aside == 0) } }                  /* P: no room is lost */

init { atomic { byte t, s;
	do :: t < NT -> s = 0; do :: s < NS -> run trainer(t,s); s++ :: else -> break od; run window(t); run fate(t); t++
	:: else -> break od;
	s = 0; do :: s < NS -> run lane(s); s++ :: else -> break od;
	run judge(); t = 0; s = 0; select(faults : 0 .. FAULTS); select(mayout : 0 .. 1) } }
