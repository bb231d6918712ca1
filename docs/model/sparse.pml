/* sparse.pml - the synchronous exchange with one sparse lane: pushes in several messages, pulls that are held until
 * their step is applied, slots and CREDIT, refusals, and what is said again when a path breaks.
 *
 * NT trainers, STEPS steps, WIN slots of a trainer. A push is PARTS messages of one part each, the last with LAST; a
 * pull is one message of PARTS parts. Nothing else is said between a message and its PUTs, which wait for slots. A batch
 * may be pulled ahead, before or after the push of the step that it asks for. Parts of a pull that is held may be sent
 * before its step is applied, with the step before in the tag, unless the pull is said again; after it CHANGED, one or
 * two messages for each, ends them. NACKS: messages of pushes that the lane
 * refuses, any. FAULTS: breaks of a path at any instant; all that is under way on it is lost, at both ends at once (bytes
 * that land late, and ends that notice at different times, are exchange.pml's).
 * -DM_...: seeded mistakes, see README.md. A comment "P:" marks a property; that every run ends with all steps done is
 * that there is no invalid end state.                                                                               */
#ifndef NT
#define NT 2
#endif
#ifndef STEPS
#define STEPS 2
#endif
#ifndef WIN
#define WIN 2
#endif
#ifndef PARTS
#define PARTS 2
#endif
#ifndef FAULTS
#define FAULTS 1
#endif
#ifndef NACKS
#define NACKS 1
#endif
#ifndef AHEAD
#define AHEAD 0                              /* trainers, from the first on, that are sent rows ahead             */
#endif
#define B(t,w)   ((t)*2+((w)&1))             /* batch that wants step w: that in hand, or the next          */
#define S(t,i)   ((t)*WIN+(i))               /* slot of a trainer                                           */
#define KEY(w,p) (2+((w)&1)*PARTS+(p))       /* a slot with part p of the keys of pull w                    */
#define FREE     0
#define GRADS    1                           /* a slot with a part of a push                                */
#define OWED     20                          /* lane only: free once CREDIT has said so                     */
#define LAST     (PARTS-1)
#define EACH(v,n) v = 0; do :: v < n ->
#define NEXT(v)  v++ :: else -> break od

mtype = { PULL, KEYS, PUSH, GRAD, HAVE, ANSWER, CHANGED, CREDIT, APPLIED, NACK, RESUME };
chan up[NT] = [4] of { mtype, byte, byte, byte };  /* kind, step, part, slot                                 */
chan dn[NT] = [12] of { mtype, byte, byte };       /* kind, step, part of which batch or slot                */
#define MORE 64                              /* of CHANGED, on its part: another one follows                  */
byte faults, nacks;                                /* what will still happen; chosen at the start            */

/* A trainer: path up, step in hand; a batch (0 none, 1 to be asked for, 2 asked, 3 here), its parts sent, answered, and
 * here as they are before the step; whether it is asked for again; the message under way (1 pull, 2 push), whose; a
 * push (0 none, 1 to be said, 2 said), its next message; NACK heard.                                                 */
bit tup[NT] = 1, nack[NT], again[NT*2]; byte cur[NT] = 1, batch[NT*2], sent[NT*2], got[NT*2], early[NT*2];
byte tell[NT], what[NT], push[NT], next[NT];
byte tslot[NT*WIN];

/* The lane: last step applied; of a trainer: greeted, last step received, parts of the push in hand, refused up to its
 * LAST, the message under way (1 pull, 2 push, 3 refused), whose, APPLIED to be said; pulls (0 none, 1 coming, 2 held,
 * 3 due), step, keys here, parts gathered, parts sent ahead, whether that is allowed, and whether half of what corrects
 * the next part is sent.                                                                                             */
byte applied, recv[NT], parts[NT], inc[NT], whose[NT], pull[NT*2], wants[NT*2], keys[NT*2], gone[NT*2], ahead[NT*2];
bit had[NT] = 1, refused[NT], due[NT], may[NT*2], half[NT*2];
byte lslot[NT*WIN];
hidden byte i_, j_; hidden mtype m_;

inline owe(t,kind) { EACH(j_,WIN) if :: lslot[S(t,j_)] == kind -> lslot[S(t,j_)] = OWED :: else fi; NEXT(j_) }
inline owe_pull(t,w) { EACH(i_,PARTS) owe(t,KEY(w,i_)); NEXT(i_) }
#define HAS(a,t,x) (a[S(t,0)] == (x) || a[S(t,WIN-1)] == (x))
#if WIN > 2
#error "HAS looks at two slots"
#endif
#define FULL(t)    (!HAS(lslot,t,FREE))
#define OWES(t)    HAS(lslot,t,OWED)
#ifdef M_CREDITLATE                          /* APPLIED and answers do not wait for CREDIT                     */
#define QUIET(t)   true
#else
#define QUIET(t)   (!OWES(t))
#endif
#define FREESLOT(t) (tslot[S(t,0)] == FREE -> 0 : WIN-1)

inline break_path(t) {                       /* DOWN at both ends; then the lane greets the next path           */
	do :: len(up[t]) > 0 -> up[t]?m_,_,_,_ :: else -> break od;
	do :: len(dn[t]) > 0 -> dn[t]?m_,_,_ :: else -> break od;
	tup[t] = 0; tell[t] = 0; nack[t] = 0; had[t] = 0; inc[t] = 0; due[t] = 0; refused[t] = 0;
	EACH(i_,WIN) tslot[S(t,i_)] = FREE; lslot[S(t,i_)] = FREE; NEXT(i_);
	EACH(i_,2)
		if :: batch[B(t,i_)] == 2 -> batch[B(t,i_)] = 1; got[B(t,i_)] = 0; again[B(t,i_)] = t < AHEAD :: else fi;
		early[B(t,i_)] = 0;
		pull[B(t,i_)] = 0; keys[B(t,i_)] = 0; gone[B(t,i_)] = 0; half[B(t,i_)] = 0; may[B(t,i_)] = 0;
#ifndef M_KEEPAHEAD
		ahead[B(t,i_)] = 0;
#endif
	NEXT(i_);
#ifndef M_KEEPPARTS
	if :: recv[t] == applied -> parts[t] = 0 :: else fi;    /* parts of what is not whole are dropped          */
#endif
	dn[t]!RESUME,recv[t],0 }

#define WANTED(t,x) (((cur[t]-1) & 1) == (x) -> cur[t]-1 : cur[t])   /* the step that the batch is asked for    */
inline has_part(t) {                         /* all rows of part j_, of step i_                                    */
	/* P: they are of the step that was asked for, each part once                                               */
	assert(i_ == WANTED(t,j_/PARTS) && !(got[B(t,i_)] & (1 << (j_%PARTS))));
	got[B(t,i_)] = got[B(t,i_)] | (1 << (j_%PARTS));
	if :: tslot[S(t,0)] == KEY(i_,j_%PARTS) -> tslot[S(t,0)] = FREE
	   :: else -> if :: tslot[S(t,WIN-1)] == KEY(i_,j_%PARTS) -> tslot[S(t,WIN-1)] = FREE :: else fi fi;
	if :: got[B(t,i_)] == (1 << PARTS)-1 -> batch[B(t,i_)] = 3; early[B(t,i_)] = 0; again[B(t,i_)] = 0
	   :: else fi }

inline hear(t) {
	if
	:: dn[t]?ANSWER,i_,j_ ->             /* j_: batch (w & 1) and part; i_: the step of the rows                */
		/* P: an answer is waited for, and lands where nothing has landed                                       */
		assert(batch[t*2+j_/PARTS] == 2 && !((got[t*2+j_/PARTS] | early[t*2+j_/PARTS]) & (1 << (j_%PARTS))));
		if :: !again[t*2+j_/PARTS] && i_+1 == WANTED(t,j_/PARTS) ->
			early[t*2+j_/PARTS] = early[t*2+j_/PARTS] | (1 << (j_%PARTS))
#ifdef M_NOCHANGED                           /* what was sent ahead needs no correction                        */
			; got[t*2+j_/PARTS] = got[t*2+j_/PARTS] | (1 << (j_%PARTS));
			if :: got[t*2+j_/PARTS] == (1 << PARTS)-1 -> batch[t*2+j_/PARTS] = 3 :: else fi
#endif
		   :: else -> has_part(t)
		fi
	:: dn[t]?CHANGED,i_,j_ ->            /* P: it corrects what was sent ahead on this path                      */
		assert(batch[t*2+j_%MORE/PARTS] == 2 && (early[t*2+j_%MORE/PARTS] & (1 << (j_%MORE%PARTS))));
		assert(i_ == WANTED(t,j_%MORE/PARTS));
		if :: j_ < MORE -> has_part(t) :: else fi
	:: dn[t]?CREDIT,_,j_ ->              /* P: CREDIT never names a slot that is free, or in other use           */
		assert(tslot[S(t,j_)] != FREE); tslot[S(t,j_)] = FREE
	:: dn[t]?APPLIED,i_,_ ->             /* P: for the step in hand, when all of it was said                     */
		assert(i_ == cur[t] && push[t] == 2 && !nack[t]);
		EACH(j_,WIN) if :: tslot[S(t,j_)] == GRADS -> tslot[S(t,j_)] = FREE :: else fi; NEXT(j_);
		batch[B(t,cur[t]-1)] = 0; got[B(t,cur[t]-1)] = 0; push[t] = 0; next[t] = 0; cur[t]++
	:: dn[t]?NACK,i_,_ -> assert(i_ == cur[t]); nack[t] = 1
	:: dn[t]?RESUME,i_,_ ->
		tup[t] = 1;
		if :: push[t] > 0 && i_ < cur[t] -> push[t] = 1; next[t] = 0
#ifdef M_REPEAT
		   :: push[t] > 0 && i_ == cur[t] -> push[t] = 1; next[t] = 0
#else
		   :: push[t] > 0 && i_ == cur[t] -> push[t] = 2
#endif
		   :: push[t] == 0
		fi;
		up[t]!HAVE,cur[t]-1,0,0
	fi;
	i_ = 0; j_ = 0 }

proctype trainer(byte t) {
	do
	:: cur[t] > STEPS -> break
	:: atomic { nempty(dn[t]) -> hear(t) }
	:: atomic { cur[t] <= STEPS && batch[B(t,cur[t]-1)] == 0 -> batch[B(t,cur[t]-1)] = 1 }
	:: atomic { cur[t] < STEPS && batch[B(t,cur[t]-1)] == 3 && batch[B(t,cur[t])] == 0 -> batch[B(t,cur[t])] = 1 }
	:: atomic { cur[t] <= STEPS && tup[t] && tell[t] == 0 && batch[B(t,cur[t]-1)] == 1 && nfull(up[t]) ->
		up[t]!PULL,cur[t]-1,0,again[B(t,cur[t]-1)]; batch[B(t,cur[t]-1)] = 2; sent[B(t,cur[t]-1)] = 0; tell[t] = 1; what[t] = cur[t]-1 }
	:: atomic { cur[t] < STEPS && tup[t] && tell[t] == 0 && batch[B(t,cur[t])] == 1 && batch[B(t,cur[t]-1)] == 3 &&
		nfull(up[t]) ->
		up[t]!PULL,cur[t],0,again[B(t,cur[t])]; batch[B(t,cur[t])] = 2; sent[B(t,cur[t])] = 0; tell[t] = 1; what[t] = cur[t] }
	:: atomic { tell[t] == 1 && HAS(tslot,t,FREE) && nfull(up[t]) ->
		i_ = FREESLOT(t); tslot[S(t,i_)] = KEY(what[t],sent[B(t,what[t])]);
		up[t]!KEYS,what[t],sent[B(t,what[t])],i_; sent[B(t,what[t])]++; i_ = 0;
		if :: sent[B(t,what[t])] == PARTS -> tell[t] = 0; what[t] = 0 :: else fi }
	:: atomic { cur[t] <= STEPS && push[t] == 0 && batch[B(t,cur[t]-1)] == 3 -> push[t] = 1; next[t] = 0 }
	:: atomic { tup[t] && tell[t] == 0 && push[t] == 1 && nfull(up[t]) -> up[t]!PUSH,cur[t],next[t],0; tell[t] = 2 }
	:: atomic { tell[t] == 2 && HAS(tslot,t,FREE) && nfull(up[t]) ->
		i_ = FREESLOT(t); tslot[S(t,i_)] = GRADS; up[t]!GRAD,cur[t],next[t],i_; tell[t] = 0; i_ = 0;
		if :: next[t] == LAST -> push[t] = 2 :: else -> next[t]++ fi }
	:: atomic { tup[t] && push[t] == 2 && nack[t] -> nack[t] = 0; push[t] = 1; next[t] = 0 }
	:: atomic { faults > 0 && cur[t] <= STEPS -> faults--; break_path(t); i_ = 0; j_ = 0 }
	od }

inline take(t) {
	if
	:: up[t]?HAVE,i_,_,_ -> had[t] = 1;
#ifndef M_NOAGAIN
		if :: applied > i_ -> due[t] = 1 :: else fi
#endif
	:: up[t]?PULL,i_,_,j_ ->             /* P: what an honest trainer says is never out of turn                  */
		assert(had[t] && inc[t] == 0 && pull[B(t,i_)] == 0);
#ifdef M_AHEADAGAIN                          /* also of a pull that is said again                                  */
		j_ = 0;
#endif
		may[B(t,i_)] = !j_ && t < AHEAD;
		pull[B(t,i_)] = 1; wants[B(t,i_)] = i_; keys[B(t,i_)] = 0; gone[B(t,i_)] = 0; inc[t] = 1; whose[t] = i_
	:: up[t]?KEYS,i_,_,j_ ->             /* P: nothing lands in a slot that is in use                             */
		assert(inc[t] == 1 && whose[t] == i_ && lslot[S(t,j_)] == FREE);
		lslot[S(t,j_)] = KEY(i_,keys[B(t,i_)]); keys[B(t,i_)]++; whose[t] = i_;
		if :: keys[B(t,i_)] == PARTS -> inc[t] = 0;
#ifdef M_NOHOLD
			if :: true -> pull[B(t,whose[t])] = 3
#else
			if :: whose[t] <= applied -> pull[B(t,whose[t])] = 3
#endif
			   :: else -> pull[B(t,whose[t])] = 2; owe_pull(t,whose[t]) fi
		   :: keys[B(t,i_)] < PARTS && FULL(t) -> owe_pull(t,whose[t])
		   :: else fi
	:: up[t]?PUSH,i_,j_,_ ->             /* P: nothing is pushed twice, nothing is skipped                        */
		assert(had[t] && inc[t] == 0 && i_ == recv[t]+1);
		whose[t] = j_;
		if :: refused[t] -> inc[t] = 3; refused[t] = (whose[t] != LAST)
		   :: !refused[t] && nacks > 0 -> nacks--; dn[t]!NACK,i_,0; inc[t] = 3;
#ifndef M_HALF
			owe(t,GRADS); parts[t] = 0;
#endif
#ifndef M_NOREST                             /* the rest of what was refused is looked at                         */
			refused[t] = (whose[t] != LAST)
#endif
		   :: !refused[t] -> inc[t] = 2
		fi
	:: up[t]?GRAD,i_,_,j_ ->
		assert(inc[t] >= 2 && lslot[S(t,j_)] == FREE);
		if :: inc[t] == 3 -> lslot[S(t,j_)] = OWED; inc[t] = 0
		   :: else ->                /* P: the parts of a push are those of one saying, each once                  */
			assert(parts[t] == whose[t]);
			lslot[S(t,j_)] = GRADS; parts[t]++; inc[t] = 0;
			if :: whose[t] == LAST -> recv[t] = i_ :: else fi;
#ifndef M_NOPARK
			if :: FULL(t) -> owe(t,GRADS) :: else fi
#endif
		fi
	fi;
	i_ = 0; j_ = 0 }

inline flush(t) {
	if
	:: OWES(t) -> i_ = (lslot[S(t,0)] == OWED -> 0 : WIN-1); dn[t]!CREDIT,0,i_; lslot[S(t,i_)] = FREE
	:: due[t] && QUIET(t) -> dn[t]!APPLIED,applied,0; due[t] = 0
	:: pull[t*2] == 3 && QUIET(t) -> gather(t,0)
	:: pull[t*2+1] == 3 && QUIET(t) -> gather(t,1)
	fi;
	i_ = 0; j_ = 0 }
inline gather(t,x) {                         /* one part; its slot is free with it, unless CREDIT was               */
	/* P: rows are of the step that was asked for                                                                 */
	assert(applied == wants[t*2+x]);
	EACH(i_,WIN) if :: lslot[S(t,i_)] == 2+x*PARTS+gone[t*2+x] -> lslot[S(t,i_)] = FREE :: else fi; NEXT(i_);
	if
#ifndef M_PUTAGAIN                           /* what was sent ahead is sent again, whole, to the same place         */
	:: gone[t*2+x] < ahead[t*2+x] && !half[t*2+x] ->
		half[t*2+x] = 1; dn[t]!CHANGED,wants[t*2+x],MORE+x*PARTS+gone[t*2+x]
	:: gone[t*2+x] < ahead[t*2+x] ->     /* one message, or the second one                                          */
		half[t*2+x] = 0; dn[t]!CHANGED,wants[t*2+x],x*PARTS+gone[t*2+x]; gone[t*2+x]++
	:: gone[t*2+x] >= ahead[t*2+x] ->
#else
	:: true ->
#endif
		dn[t]!ANSWER,wants[t*2+x],x*PARTS+gone[t*2+x]; gone[t*2+x]++
	fi;
	if :: gone[t*2+x] == PARTS -> pull[t*2+x] = 0; ahead[t*2+x] = 0; may[t*2+x] = 0 :: else fi }
/* A part of a pull that is held for the step that is being pushed, when nothing else is to be said, and nothing of the
 * trainer is under way; not more than fit beside what follows them.                                                  */
#define MAY(t,x) (pull[(t)*2+(x)] == 2 && wants[(t)*2+(x)] == applied+1 && may[(t)*2+(x)] && ahead[(t)*2+(x)] < PARTS)
inline send_ahead(t,x) { dn[t]!ANSWER,applied,(x)*PARTS+ahead[(t)*2+(x)]; ahead[(t)*2+(x)]++ }

#define READY(t)  (recv[t] == applied+1)
#define ASKED(t)  (pull[(t)*2] == 3 || pull[(t)*2+1] == 3)
inline apply() {
	applied++;
	EACH(i_,NT)
		assert(parts[i_] == PARTS);  /* P: a step is summed of whole pushes, each once                           */
		parts[i_] = 0; due[i_] = had[i_];
		EACH(j_,WIN) if :: lslot[S(i_,j_)] == GRADS -> lslot[S(i_,j_)] = FREE :: else fi; NEXT(j_);
		EACH(j_,2) if :: pull[i_*2+j_] == 2 && wants[i_*2+j_] == applied -> pull[i_*2+j_] = 3 :: else fi; NEXT(j_);
	NEXT(i_);
	i_ = 0; j_ = 0 }

#define TURN(t) \
	:: atomic { nempty(up[t]) -> take(t) } \
	:: atomic { had[t] && (OWES(t) || due[t] || pull[(t)*2] == 3 || pull[(t)*2+1] == 3) -> flush(t) } \
	:: atomic { had[t] && !OWES(t) && !due[t] && inc[t] == 0 && MAY(t,0) && len(dn[t]) < 6 -> send_ahead(t,0) } \
	:: atomic { had[t] && !OWES(t) && !due[t] && inc[t] == 0 && MAY(t,1) && len(dn[t]) < 6 -> send_ahead(t,1) }

proctype lane() {
end:	do
	TURN(0)
#if NT > 1
	TURN(1)
#endif
	:: atomic { READY(0) && READY(NT-1) && !ASKED(0) && !ASKED(NT-1) -> apply() }
	od }

init { atomic {
	do :: faults < FAULTS -> faults++ :: break od;
	do :: nacks < NACKS -> nacks++ :: break od;
	run lane(); run trainer(0);
#if NT > 1
	run trainer(1)
#endif
} }
