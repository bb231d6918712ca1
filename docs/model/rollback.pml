/* rollback.pml - pservers that die or sleep, and how all go back to one snapshot: registrar, records, epochs, trainers.
 *
 * Pserver 0 (its process has the registrar) and pserver 1, NT trainers, STEPS steps. A snapshot is SNAP, a part that is
 * durable at each pserver at instants of their own (snapshot.pml), PART, and the manifest. KILLS: a process dies at any
 * instant and is started again. SLEEPS: a process is taken for dead, another is started in its place, and the old one
 * goes on later. BREAKS: the connection between registrar and pserver 1 breaks, what is on it is lost; that to a process
 * that sleeps or was replaced breaks at any time. DAMAGE: parts that cannot be loaded. Paths between trainers and lanes
 * end only with a process or a rollback (the rest is exchange.pml's); a trainer notices DOWN later than the lane.
 *
 * Records are files of pserver 0, made with O_EXCL: record e is either "epoch e begins with manifest x" or "the job has
 * ended in epoch e-1". A rollback: LOAD, LOADED of all, the record, RUN.
 * -DALL: all of these happen.
 * -DM_...: seeded mistakes, see README.md. A comment "P:" marks a property. No cycle exists (checked with -DNP).     */
#ifndef NT
#define NT 1
#endif
#ifndef STEPS
#define STEPS 2
#endif
#ifndef KILLS
#define KILLS 1
#endif
#ifndef SLEEPS
#define SLEEPS 1
#endif
#ifndef BREAKS
#define BREAKS 1
#endif
#ifndef SNAPS
#define SNAPS 2
#endif
#ifndef DAMAGE
#define DAMAGE 0
#endif
#define NI      3                             /* processes: pserver 0, pserver 1, in place of one of them */
#define NE      (KILLS+2*SLEEPS+3)            /* epochs                                                   */
#define BS      (STEPS+1)
#define NX      (NE*BS)
#define X(e,k)  ((e)*BS+(k))                  /* a state, and a snapshot of it: epoch, step               */
#define B(x)    ((x)%BS)
#define T(t,i)  ((t)*NI+(i))                  /* a trainer's path to a process                            */
#define A(t,s)  ((t)*2+(s))                   /* a trainer and a pserver                                  */
#define SRV(i)  ((i) == 2 -> third : (i))
#define ISUP(i) (st[i] != DEAD && !asleep[i])
#define ENDED   255
#define DEAD    0
#define JOINS   1
#define READY   2                             /* it has loaded, and serves nobody                         */
#define RUNS    3
#define STEPPING 0                            /* a trainer                                                */
#define ROLLED  1
#define REJOINS 2
#define DONE    4

mtype = { LOAD, LOADED, BAD, RUN, SNAP, PART, FAILED };
chan toP[NI] = [5] of { mtype, byte, byte };  /* registrar to the pserver 1 that is process i: kind, epoch, snapshot */
chan toR[NI] = [5] of { mtype, byte, byte };  /* back                                                     */
byte kills, sleeps, breaks, snaps, damage, third, next = 2;

/* A process: what it does, incarnation (0: never started), epoch, epoch to be loaded, its snapshot, state; border that is
 * wanted, state that was copied. Pserver 1: the registrar that it is connected to (process + 1).           */
byte st[NI], inc[NI], ep[NI], le[NI], lx[NI], id[NI], want[NI], copied[NI], ctl[NI]; bit asleep[NI], old[NI];
/* A registrar: pserver 1 (process + 1), its incarnation, whether it has loaded, snapshot, parts, job ended.   */
byte con[NI], pinc[NI], rs[NI], rp[NI]; bit pok[NI], fin[NI];
#ifdef M_RUNFIRST
bit due[NI];
#endif
/* Disks: records (1 + base), manifests, parts, what cannot be loaded; who owned an epoch; histories that were left.    */
byte rec[NE+1]; bit man[NX], part[NX*2], bad[NX], gone[NX]; byte own[NE*2];
/* Paths: lane's end up, push on its way and received, answer on its way.                                 */
bit lup[NT*NI], got[NT*NI]; byte put[NT*NI], ans[NT*NI];
/* A trainer: epoch, step in hand, what it does; path (process + 1), pushed, state that its arrays are of.*/
byte te[NT] = 1, cur[NT] = 1, tm[NT], tp[NT*2], arr[NT*2]; bit pushed[NT*2];
hidden byte i_, j_, k_, e_, b_, x_, a_, r_; hidden mtype m_;

inline cut(i) {                               /* pserver 1 that is process i loses its registrar           */
	if :: ctl[i] -> con[ctl[i]-1] = 0; ctl[i] = 0 :: else fi;
	do :: len(toP[i]) > 0 -> toP[i]?_,_,_ :: len(toP[i]) == 0 -> break od;
	do :: len(toR[i]) > 0 -> toR[i]?_,_,_ :: len(toR[i]) == 0 -> break od }
inline paths_down(i) {
	k_ = 0;
	do :: k_ < NT -> lup[T(k_,i)] = 0; put[T(k_,i)] = 0; got[T(k_,i)] = 0; k_++ :: else -> break od }
inline die(i) {
	if :: SRV(i) == 1 -> cut(i) :: else -> if :: con[i] -> j_ = con[i]-1; cut(j_) :: else fi fi;
	paths_down(i); k_ = 0; do :: k_ < NT -> ans[T(k_,i)] = 0; k_++ :: else -> break od;
	st[i] = DEAD; ep[i] = 0; le[i] = 0; lx[i] = 0; id[i] = 0; want[i] = 0; copied[i] = 0; asleep[i] = 0;
	pinc[i] = 0; rs[i] = 0; rp[i] = 0; pok[i] = 0; fin[i] = 0 }
inline newest() {                             /* e_: the last record                                       */
	e_ = NE; do :: e_ > 0 && !rec[e_] -> e_-- :: else -> break od }
inline choose() {                             /* x_: newest snapshot of the history that remains, e_: epoch to come */
	newest(); a_ = e_; b_ = STEPS; x_ = X(a_,b_);
	do :: (!man[X(a_,b_)] || bad[X(a_,b_)]) && (a_ > 0 || b_ > 0) ->
		if :: b_ > 0 -> b_--
#ifdef M_NOCHAIN                              /* the highest epoch and border that there is                */
		:: else -> a_--; b_ = STEPS
#else
		:: else -> x_ = rec[a_]-1; a_ = x_/BS; b_ = B(x_)
#endif
		fi
	:: else -> break od;
	x_ = X(a_,b_); e_++ }
inline attempt(r) {                           /* all are to load: first the registrar's own lane           */
	newest();
	if :: rec[e_] == ENDED -> fin[r] = 1; st[r] = RUNS     /* another registrar has ended the job             */
	:: else ->
	paths_down(r); want[r] = 0; copied[r] = 0; rs[r] = 0; rp[r] = 0; pok[r] = 0;
	choose(); st[r] = READY; le[r] = e_; lx[r] = x_; id[r] = x_;
	toP[con[r]-1]!LOAD,e_,x_ fi }
inline serve(i) { st[i] = RUNS; ep[i] = le[i] }
inline leave_others(e) {                      /* snapshots that are not of the history of epoch e          */
	k_ = 0; do :: k_ < NX -> gone[k_] = gone[k_] || man[k_]; k_++ :: else -> break od;
	x_ = rec[e]-1;
	do :: true ->
		b_ = 0; a_ = x_/BS;
		do :: b_ <= B(x_) -> gone[X(a_,b_)] = 0; b_++ :: else -> break od;
		if :: a_ == 0 -> break :: else -> x_ = rec[a_]-1 fi od }

inline join(i,r) {                            /* a connection: pserver 1 says what it is and has           */
	if :: con[r] -> j_ = con[r]-1; cut(j_) :: else fi;
	ctl[i] = r+1; con[r] = i+1;
#ifdef M_SAMEINC                              /* known by its number, not its incarnation                  */
	if :: pinc[r] -> pinc[r] = inc[i] :: else fi;
#endif
	if
	:: fin[r] -> pinc[r] = inc[i]
	:: else -> if
		:: pinc[r] == inc[i] && st[r] == RUNS && st[i] == RUNS && ep[i] == ep[r] ->   /* only a connection */
			if :: rs[r] && !(rp[r] & 2) -> toP[i]!SNAP,ep[r],rs[r] :: else fi
		:: pinc[r] == inc[i] && st[r] == RUNS && st[i] == READY && le[i] == ep[r] && lx[i] == lx[r] ->
#ifdef M_NOREPEAT
			skip
#else
			toP[i]!RUN,ep[r],lx[r]
#endif
#ifdef M_SAMEINC
		:: pinc[r] == inc[i] && st[r] == RUNS && st[i] == JOINS -> skip
#endif
		:: else -> pinc[r] = inc[i]; attempt(r)
		fi
	fi }

#ifdef M_LOWINC                               /* an incarnation that was replaced may return              */
#define NEWER(i,r) true
#else
#define NEWER(i,r) (inc[i] >= pinc[r])
#endif

proctype pserver1(byte i) {                   /* a process that is pserver 1 (1, or 2)                     */
end:	do
	:: d_step { ISUP(i) && SRV(i) == 1 && !ctl[i] && ISUP(0) &&
		NEWER(i,0) -> join(i,0); i_ = 0 }
	:: d_step { i == 1 && ISUP(1) && !ctl[1] && third == 0 && ISUP(2) && NEWER(1,2) ->
		join(1,2); i_ = 0 }
	:: d_step { i == 2 && third == 1 && ISUP(2) && ctl[1] && ISUP(0) && ctl[1] == 1 && !ctl[2] ->  /* a higher one */
		join(2,0); i_ = 0 }
	:: d_step { ISUP(i) && SRV(i) == 1 && len(toP[i]) > 0 -> toP[i]?m_,a_,x_;
		if
		:: m_ == LOAD && (a_ > ep[i] || st[i] != RUNS) ->
#ifdef M_KEEPPATH
			skip;
#else
			paths_down(i);
#endif
			want[i] = 0; copied[i] = 0;
			if :: bad[x_] -> st[i] = JOINS; le[i] = 0; toR[i]!BAD,a_,x_
			:: else ->
#ifdef M_ONLYDEAD                             /* who has survived keeps what it has                        */
				if :: st[i] == JOINS -> id[i] = x_ :: else fi;
#else
				id[i] = x_;
#endif
				st[i] = READY; le[i] = a_; lx[i] = x_; toR[i]!LOADED,a_,x_
			fi
		:: m_ == RUN && st[i] == READY && le[i] == a_ && lx[i] == x_ -> serve(i)
		:: m_ == SNAP && st[i] == RUNS && ep[i] == a_ ->
			if :: part[x_*2+1] -> toR[i]!PART,a_,x_          /* said again                    */
			:: else -> if :: copied[i] == x_ -> skip
				:: else -> if :: B(id[i]) > B(x_) -> toR[i]!FAILED,a_,x_
					:: B(id[i]) == B(x_) -> copied[i] = id[i]
					:: else -> want[i] = B(x_) fi fi fi
		:: else
		fi; k_ = 0; a_ = 0; x_ = 0 }
	od }

inline commit(r) {
	if :: rec[le[r]] -> die(r)                    /* another registrar has begun that epoch: this one ends */
	:: else ->
		assert(!gone[lx[r]]);                 /* P: what was left is not gone back to                     */
		rec[le[r]] = lx[r]+1; own[le[r]*2] = inc[r]; own[le[r]*2+1] = pinc[r];
		leave_others(le[r]); serve(r);
		if :: con[r] -> toP[con[r]-1]!RUN,le[r],lx[r] :: else fi
	fi }
#ifdef M_FINRACE                              /* the end is no record: it may be written beside epoch e+1  */
#define MAYEND(r) true
#else
#define MAYEND(r) (!rec[ep[r]+1])
#endif

proctype registrar(byte r) {
end:	do
	:: d_step { ISUP(r) && SRV(r) == 0 && con[r] && len(toR[con[r]-1]) > 0 -> toR[con[r]-1]?m_,a_,x_;
		if
		:: m_ == LOADED && st[r] == READY && a_ == le[r] && x_ == lx[r] -> pok[r] = 1
		:: m_ == BAD && st[r] == READY && x_ == lx[r] -> attempt(r)
		:: m_ == PART && rs[r] == x_ -> rp[r] = rp[r] | 2
		:: m_ == FAILED && rs[r] == x_ -> rs[r] = 0; rp[r] = 0
		:: else
		fi; a_ = 0; b_ = 0; x_ = 0; k_ = 0; e_ = 0 }
#ifdef M_RUNFIRST                             /* RUN goes before the record is durable                     */
	:: d_step { ISUP(r) && st[r] == READY && pok[r] && !rec[le[r]] -> due[r] = 1; serve(r); pok[r] = 0;
		own[le[r]*2] = inc[r]; own[le[r]*2+1] = pinc[r];
		if :: con[r] -> toP[con[r]-1]!RUN,le[r],lx[r] :: else fi }
	:: d_step { ISUP(r) && due[r] && st[r] == RUNS && !rec[ep[r]] -> due[r] = 0; rec[ep[r]] = lx[r]+1 }
#else
	:: d_step { ISUP(r) && st[r] == READY && SRV(r) == 0 && pok[r] -> commit(r);
		a_ = 0; b_ = 0; x_ = 0; k_ = 0; j_ = 0 }
#endif
	:: d_step { ISUP(r) && SRV(r) == 0 && st[r] == RUNS && !fin[r] && !rs[r] && snaps > 0 && B(id[r]) < STEPS && con[r] ->
		snaps--; want[r] = B(id[r])+1; rs[r] = X(ep[r],want[r]); rp[r] = 0;
		if :: part[rs[r]*2] -> rs[r] = 0; want[r] = 0 :: else -> toP[con[r]-1]!SNAP,ep[r],rs[r] fi }
	:: d_step { ISUP(r) && rs[r] && rp[r] == 3 ->
		assert(part[rs[r]*2] && part[rs[r]*2+1]);     /* P: a manifest names parts that are durable       */
		man[rs[r]] = 1; gone[rs[r]] = (rec[ep[r]+1] != 0); rs[r] = 0; rp[r] = 0 }
#ifdef M_BYEFIRST                             /* a trainer that has done its steps may leave               */
	:: d_step { ISUP(r) && SRV(r) == 0 && st[r] == RUNS && B(id[r]) == STEPS && got[T(0,r)] && tm[0] == STEPPING ->
		ans[T(0,r)] = ENDED }
#endif
	:: d_step { ISUP(r) && SRV(r) == 0 && st[r] == RUNS && !fin[r] && B(id[r]) == STEPS && got[T(0,r)] && got[T(NT-1,r)] ->
		if :: MAYEND(r) ->                    /* P: an epoch that was left does not end the job           */
			newest(); assert(e_ == ep[r]); rec[ep[r]+1] = ENDED; fin[r] = 1;
			k_ = 0; do :: k_ < NT -> ans[T(k_,r)] = ENDED; k_++ :: else -> break od
		:: else -> die(r) fi; k_ = 0; j_ = 0; e_ = 0 }
	od }

inline push_in(t,i) {                         /* P: nothing is counted twice, or left out, or of another history */
	assert(put[T(t,i)] == B(id[i])+1 && !got[T(t,i)] && te[t] == ep[i]);
	got[T(t,i)] = 1; put[T(t,i)] = 0 }

proctype lane(byte i) {
	byte t;
end:	do
	:: d_step { ISUP(i) && st[i] == RUNS && put[T(0,i)] -> push_in(0,i) }
#if NT > 1
	:: d_step { ISUP(i) && st[i] == RUNS && put[T(1,i)] -> push_in(1,i) }
#endif
	:: d_step { ISUP(i) && st[i] == RUNS && B(id[i]) < STEPS && got[T(0,i)] && got[T(NT-1,i)] ->
		id[i] = X(ep[i],B(id[i])+1);
		if :: want[i] == B(id[i]) -> copied[i] = id[i]; want[i] = 0 :: else fi;
		t = 0;
		do :: t < NT -> got[T(t,i)] = 0; if :: lup[T(t,i)] -> ans[T(t,i)] = id[i] :: else fi; t++ :: else -> break od; t = 0 }
	:: d_step { ISUP(i) && copied[i] ->           /* the part is durable                                      */
		assert(!part[copied[i]*2+SRV(i)]);    /* P: no file is written twice                              */
		part[copied[i]*2+SRV(i)] = 1;
		if :: SRV(i) == 0 -> if :: rs[i] == copied[i] -> rp[i] = rp[i] | 1 :: else fi
		:: else -> if :: ctl[i] -> toR[i]!PART,ep[i],copied[i] :: else fi fi;
		copied[i] = 0 }
	od }
#ifdef M_ONEPHASE                             /* a lane welcomes trainers when it has loaded              */
#define SERVES(i) (st[i] >= READY)
#define EPOCH(i) (st[i] == READY -> le[i] : ep[i])
#else
#define SERVES(i) (st[i] == RUNS)
#define EPOCH(i) ep[i]
#endif
inline drop_paths(t) {
	k_ = 0;
	do :: k_ < NI -> lup[T(t,k_)] = 0; put[T(t,k_)] = 0; ans[T(t,k_)] = 0; k_++ :: else -> break od;
	tp[A(t,0)] = 0; tp[A(t,1)] = 0 }
#ifdef M_KEEPARRAYS
byte kept[NT*2];
#define KEPT(t,s) kept[A(t,s)]
#else
#define KEPT(t,s) 0
#endif
inline connect(u,q,o) {
	if
	:: fin[o] -> tm[u] = DONE; drop_paths(u)
	:: else -> if
		:: EPOCH(o) > te[u] ->                /* every pending call ends with WEFT_ROLLED_BACK            */
#ifdef M_KEEPARRAYS                           /* what an interrupted rejoin has brought is not pulled again */
			kept[A(u,0)] = (tm[u] == REJOINS && tp[A(u,0)]) * (arr[A(u,0)]+1);
			kept[A(u,1)] = (tm[u] == REJOINS && tp[A(u,1)]) * (arr[A(u,1)]+1);
#endif
			te[u] = EPOCH(o); tm[u] = ROLLED;
#ifdef M_TKEEP                                /* other paths stay                                         */
			tp[A(u,q)] = 0
#else
			drop_paths(u)
#endif
			; pushed[A(u,0)] = 0; pushed[A(u,1)] = 0;
			arr[A(u,0)] = 0; arr[A(u,1)] = 0;
#ifdef M_KEEPARRAYS
			if :: kept[A(u,0)] -> arr[A(u,0)] = kept[A(u,0)]-1 :: else fi;
			if :: kept[A(u,1)] -> arr[A(u,1)] = kept[A(u,1)]-1 :: else fi
#endif
		:: else -> tp[A(u,q)] = o+1; lup[T(u,o)] = 1;
			if :: tm[u] == REJOINS && KEPT(u,q) == 0 -> arr[A(u,q)] = id[o]
			:: else -> skip fi
		fi
	fi }
#ifdef M_OLDLANE                              /* a lane of an older epoch is taken, too                   */
#define ISMET(t,i) SERVES(i)
#else
#define ISMET(t,i) (SERVES(i) && (EPOCH(i) >= te[t] || fin[i]))
#endif
#define MAYMEET(t,s,i) (tm[t] != DONE && tm[t] != ROLLED && !tp[A(t,s)] && ISUP(i) && SRV(i) == (s) && ISMET(t,i))

proctype trainer(byte t; byte s) {
end:	do
	:: d_step { tm[t] == STEPPING && tp[A(t,s)] && !pushed[A(t,s)] && (cur[t] <= STEPS || s == 0) ->
		/* P: all arrays are of one state, that before the step in hand                                   */
		assert((pushed[A(t,1-s)] || arr[A(t,0)] == arr[A(t,1)]) && B(arr[A(t,s)]) == cur[t]-1);
		pushed[A(t,s)] = 1;
		if :: lup[T(t,tp[A(t,s)]-1)] -> put[T(t,tp[A(t,s)]-1)] = cur[t] :: else fi }     /* or GOODBYE   */
	:: d_step { tp[A(t,s)] && ans[T(t,tp[A(t,s)]-1)] -> i_ = tp[A(t,s)]-1; x_ = ans[T(t,i_)]; ans[T(t,i_)] = 0;
		if :: x_ == ENDED -> tm[t] = DONE; drop_paths(t)
		:: else ->
			assert(tm[t] == STEPPING && x_/BS == te[t] && own[te[t]*2+s] == inc[i_]);  /* P: of who owns it */
			assert(B(x_) == cur[t]);
			arr[A(t,s)] = x_;
			if :: arr[A(t,0)] == arr[A(t,1)] -> cur[t]++; pushed[A(t,0)] = 0; pushed[A(t,1)] = 0 :: else fi
		fi; i_ = 0; x_ = 0; k_ = 0 }
	:: d_step { tp[A(t,s)] && !lup[T(t,tp[A(t,s)]-1)] -> ans[T(t,tp[A(t,s)]-1)] = 0; tp[A(t,s)] = 0 }   /* DOWN */
	:: d_step { s == 0 && tm[t] == ROLLED -> tm[t] = REJOINS }       /* weft_session_rejoin                   */
	:: d_step { s == 0 && tm[t] == REJOINS && tp[A(t,0)] && tp[A(t,1)] ->
		assert(arr[A(t,0)] == arr[A(t,1)]);   /* P: after a rejoin all arrays are of one step             */
		cur[t] = B(arr[A(t,0)])+1; tm[t] = STEPPING }
	:: d_step { MAYMEET(t,s,s) -> connect(t,s,s); k_ = 0 }
	:: d_step { inc[2] && third == s && MAYMEET(t,s,2) -> connect(t,s,2); k_ = 0 }
	od }

inline start(i) {
	next++; inc[i] = next; st[i] = JOINS;
	newest(); if :: rec[e_] == ENDED && SRV(i) == 0 -> fin[i] = 1; st[i] = RUNS :: else fi; e_ = 0 }
proctype fate(byte i) {
end:	do
	:: d_step { kills > 0 && ISUP(i) && !old[i] && !fin[i] -> kills--; die(i); k_ = 0; j_ = 0
#ifdef M_EPOCHMEM                             /* the epoch is that of the newest manifest and one more    */
		; if :: SRV(i) == 0 -> newest();
			do :: e_ > 1 && !man[X(e_,1)] && !man[X(e_,STEPS)] -> rec[e_] = 0; e_-- :: else -> break od; e_ = 0
		:: else fi
#endif
		}
	:: d_step { st[i] == DEAD && inc[i] && !old[i] -> start(i) }
	:: d_step { i < 2 && sleeps > 0 && ISUP(i) && !fin[i] -> sleeps--; asleep[i] = 1; old[i] = 1; third = i; start(2) }
	:: d_step { asleep[i] -> asleep[i] = 0 }
	:: d_step { ctl[i] && ISUP(i) && !old[ctl[i]-1] && breaks > 0 -> breaks--; cut(i); k_ = 0 }
	:: d_step { ctl[i] && (asleep[i] || asleep[ctl[i]-1]) -> cut(i); k_ = 0 }
	:: d_step { damage > 0 && i == 0 && man[X(1,1)] && !bad[X(1,1)] -> damage--; bad[X(1,1)] = 1 }
	:: d_step { damage > 0 && i == 0 && man[X(1,2)] && !bad[X(1,2)] -> damage--; bad[X(1,2)] = 1 }
	od }

proctype judge() {                            /* P: in the end all steps are done, by all                     */
	timeout -> d_step { k_ = 0; do :: k_ < NT -> assert(tm[k_] == DONE && cur[k_] == STEPS+1); k_++ :: else -> break od } }

init { atomic { byte t;
	man[0] = 1; part[0] = 1; part[1] = 1; rec[1] = 1; own[2] = 1; own[3] = 2;     /* the initial values: a snapshot */
	st[0] = RUNS; st[1] = RUNS; inc[0] = 1; inc[1] = 2; ep[0] = 1; ep[1] = 1; le[0] = 1; le[1] = 1;
	ctl[1] = 1; con[0] = 2; pinc[0] = 2;
	do :: t < NT -> tp[A(t,0)] = 1; tp[A(t,1)] = 2; lup[T(t,0)] = 1; lup[T(t,1)] = 1;
		run trainer(t,0); run trainer(t,1); t++ :: else -> break od;
	run registrar(0); run registrar(2); run pserver1(1); run pserver1(2); run lane(0); run lane(1); run lane(2);
	run fate(0); run fate(1); run fate(2); run judge(); t = 0;
#ifdef ALL                                    /* the search begins with the most faults                    */
	kills = KILLS; sleeps = SLEEPS; breaks = BREAKS; snaps = SNAPS; damage = DAMAGE } }
#else
	select(kills : 0 .. KILLS); select(sleeps : 0 .. SLEEPS); select(breaks : 0 .. BREAKS); select(snaps : 0 .. SNAPS);
	select(damage : 0 .. DAMAGE) } }
#endif
