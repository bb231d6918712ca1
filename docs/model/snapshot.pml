/* snapshot.pml - a snapshot that pservers write while training goes on: copies before changes, files, the manifest.
 *
 * Pserver 0 has the slices 0 and 1 and the registrar, pserver 1 has slice 2; STEPS steps. A trainer begins a step when all
 * slices have answered the last one. The registrar orders a snapshot of a border; a lane copies each slice that has come
 * to the border into its buffer (BUF chunks) before the slice changes again, and the apply waits for room. The helper
 * thread writes chunks, fsync, rename, fsync of the directory; the registrar's manifest is last, and then old snapshots
 * go (KEEP). KILLS: a pserver dies at any instant, what is not synced is lost or kept; it starts again and all go back
 * to the newest snapshot that can be loaded, in a new epoch. That is one instant here, see rollback.pml; only the helper
 * of who survived may be busy still. FAILS: operations of a disk that fail. DAMAGE: parts that are damaged in their place.
 * Without KILLS the pair registrar and pserver 1 loses no message.
 *
 * -DASYNC: pushes of each of NT trainers are applied on arrival, and there is no border: a slice is copied
 * with its counters whenever its lane comes to it. One slice on each pserver.
 * -DM_...: seeded mistakes, see README.md. A comment "P:" marks a property. No cycle exists (checked with -DNP).     */
#ifndef STEPS
#define STEPS 2
#endif
#ifndef KILLS
#define KILLS 1
#endif
#ifndef FAILS
#define FAILS 1
#endif
#ifndef DAMAGE
#define DAMAGE 1
#endif
#ifndef KEEP
#define KEEP 1
#endif
#ifdef ASYNC
#ifndef NT
#define NT 1
#endif
#define NS 2
#ifndef MAXB
#define MAXB 2                                /* snapshots of an epoch                                    */
#endif
#define FROM(p) (p)                           /* slices of pserver p                                      */
#define TO(p)   ((p)+1)
#define ONEOF(s,p) ((s) == (p))
#else
#define NT 1                                  /* all trainers together                                    */
#define NS 3
#define MAXB STEPS
#define FROM(p) ((p)*2)
#define TO(p)   (2+(p))
#define ONEOF(s,p) ((s)/2 == (p))
#endif
#define BS      (MAXB+1)
#define NX      ((KILLS+2)*BS)
#define X(e,b)  ((e)*BS+(b))                  /* a snapshot: epoch and border                             */
#define B(x)    ((x)%BS)
#ifdef M_NAME                                 /* names of files lack the epoch                            */
#define NAME(x) B(x)
#else
#define NAME(x) (x)
#endif
#ifdef M_HEAD                                 /* the head of a slice has the border without the epoch     */
#define HEAD(x) B(x)
#else
#define HEAD(x) (x)
#endif
#define PART(x,p) (NAME(x)*2+(p))
#define C(t,s)  ((t)*NS+(s))
#define ALLIN(t,k) (c[C(t,0)] >= (k) && c[C(t,1)] >= (k) && c[C(t,NS-1)] >= (k))
#define VALUES(s) (c[s]+4*(NT > 1 -> c[C(NT-1,s)] : 0))
#define ISCOPIED(s,p) (head[s] == HEAD(hx[p]))
#ifdef M_FAILHOLD                             /* after a failure the lane still copies before it applies   */
#define ISCOPYING(p) (hs[p] == 1 || hs[p] == 6)
#else
#define ISCOPYING(p) (hs[p] == 1)
#endif
#ifdef ASYNC
#define ISAT(s,p) true
#else
#define ISAT(s,p) (c[s] == B(hx[p]))
#endif

#ifdef M_PUSHALL                              /* after a rejoin all slices of a step are pushed           */
bit again[NT*NS];
#define REPEATS(t,s) again[C(t,s)]
#else
#define REPEATS(t,s) false
#endif

mtype = { ORDER, DONE, REMOVE };
chan to1 = [3] of { mtype, byte };            /* registrar to pserver 1: kind, snapshot                   */
chan to0 = [3] of { mtype, byte, bit };       /* back: kind, snapshot, whether it is durable              */
byte kills, fails, damage;                    /* what will still happen; chosen at the start              */
bit  over;                                    /* no snapshot can be loaded: the job ends                  */

/* Trainers: step in hand. Slices: steps of each trainer that are in it; the snapshot it was copied for.  */
byte cur[NT] = 1, c[NT*NS], head[NS];
/* A pserver: dead; buffer: whose chunk (1 + slice), what; helper (0 idle, 1 writes, 2 synced, 3 renamed, 4 to be reported,
 * 5 given up), its snapshot, slices written.                                                             */
bit  dead[2]; byte chunk[2], hs[2], hx[2], wrote[2]; short what[2];
/* The registrar: 0 idle, 1 waits for parts, 2 manifest renamed, 3 looks for old ones, 4 one unlinked; snapshot, border
 * of the last, parts, old one, positions.                                                                */
byte rs, rx, rb, rp, ry, rpos[NT], ep = 1;
/* Disks: name of a part (0 none, 1 durable, 2 not yet), damaged, contents; name of a manifest (the same, 3: unlinked, not
 * yet durable), positions; the manifest with which an epoch began.                                       */
byte part[NX*2], man[NX], mpos[NX*NT], base[KILLS+2]; bit bad[NX*2]; short file[NX*NS];
#ifdef M_NOFSYNC
bit dirty[NX*2];
#endif
#ifdef M_REUSE
byte stale[2];
#endif
hidden byte i_, j_, k_, e_, b_, n_, new_, ok_; hidden mtype m_;

/* P: a manifest names parts that are durable and whole, whatever happens (a fault of the disk aside).    */
inline check() {
	i_ = 0;
	do :: i_ < NX ->
		assert(!man[i_] || (part[PART(i_,0)] == 1 && part[PART(i_,1)] == 1));
		i_++
	:: else -> break od }
/* The newest snapshots of the history that remains, newest first: an epoch's own, then those up to its base. new_: the
 * newest with a manifest (and, if load is 1, parts that are good); k_: the first beyond KEEP of them; NX: none.       */
inline walk(load) {
	e_ = ep; b_ = MAXB; n_ = 0; new_ = NX; k_ = NX;
	do
	:: true ->
		i_ = X(e_,b_);
#ifdef M_NOCRC
		ok_ = man[i_] && (!load || (part[PART(i_,0)] && part[PART(i_,1)]));
#else
		ok_ = man[i_] && (!load || (part[PART(i_,0)] && part[PART(i_,1)] && !bad[PART(i_,0)] && !bad[PART(i_,1)]));
#endif
		if :: ok_ -> n_++; if :: new_ == NX -> new_ = i_ :: else fi;
				if :: n_ > KEEP && k_ == NX -> k_ = i_ :: else fi
		:: else fi;
		if :: b_ > 0 -> b_--
		:: else -> if :: e_ == 0 -> break :: else -> i_ = base[e_]; b_ = B(i_); e_ = i_/BS fi fi
	od; ok_ = 0 }
#ifdef M_KEEPALL                              /* the highest borders are kept, of whatever history        */
inline oldest() {
	b_ = MAXB; n_ = 0; k_ = NX;
	do :: true -> e_ = ep;
		do :: true ->
			if :: man[X(e_,b_)] -> n_++; if :: n_ > KEEP && k_ == NX -> k_ = X(e_,b_) :: else fi :: else fi;
			if :: e_ > 0 -> e_-- :: else -> break fi od;
		if :: b_ > 0 -> b_-- :: else -> break fi od }
#else
inline oldest() { walk(0) }
#endif

inline registrar_has(q,x,ok) {
	if :: rs == 1 && rx == x -> if :: ok -> rp = rp | (1 << q) :: else -> rs = 0; rp = 0 fi
	:: else fi }
inline report(p,x,ok) { if :: p == 0 -> registrar_has(0,x,ok) :: else -> to0!DONE,x,ok fi }
inline begin(p,x) {                           /* the order has come; a border that is behind costs the snapshot */
	ok_ = (hs[p] == 0); i_ = FROM(p);
#if !defined(ASYNC) && !defined(M_LATE)
	do :: i_ < TO(p) -> if :: c[i_] > B(x) -> ok_ = 0 :: else fi; i_++ :: else -> break od;
#endif
#ifdef M_NAME                                 /* the file is there: it was written                        */
	if :: ok_ && part[PART(x,p)] -> hs[p] = 4; hx[p] = x
	:: ok_ && !part[PART(x,p)] -> hs[p] = 1; hx[p] = x; wrote[p] = 0
#else
	if :: ok_ -> assert(part[PART(x,p)] == 0);    /* P: no file is written twice (O_EXCL)                     */
		hs[p] = 1; hx[p] = x; wrote[p] = 0
#endif
	:: else -> report(p,x,0) fi;
	ok_ = 0 }
inline give_up(p) { hs[p] = 0; hx[p] = 0; wrote[p] = 0; chunk[p] = 0; what[p] = 0 }
inline put(s,p,x) {                           /* a chunk reaches the file                                 */
#ifdef M_STATE                                /* state and counters are copied when they are written      */
	what[p] = (what[p] & ~240) + 16*VALUES(s);
#endif
	file[NAME(x)*NS+s] = what[p]; chunk[p] = 0; what[p] = 0; wrote[p]++ }

proctype slice(byte s; byte p; byte t) {
end:	do    /* apply: with a copy before it, if one is due */
	:: d_step { !over && !dead[p] && !dead[1-p] && cur[t] <= STEPS && (c[C(t,s)] < cur[t] || REPEATS(t,s)) &&
#ifdef M_NOPRE
		true
#else
		!(ISCOPYING(p) && !ISCOPIED(s,p) && ISAT(s,p))
#endif
		->
		assert(c[C(t,s)] == cur[t]-1);        /* P: nothing is left out, nothing is counted twice         */
		c[C(t,s)]++;
		if :: ALLIN(t,cur[t]) -> cur[t]++ :: else fi }
	od }

proctype pserver(byte p) {
	byte s;
end:	do
	:: d_step { !over && !dead[p] && hs[p] == 1 && chunk[p] == 0 && !ISCOPIED(FROM(p),p) &&
#if defined(M_NOPRE) || defined(M_LATE)
		(ISAT(FROM(p),p) || c[FROM(p)] > B(hx[p]))
#else
		ISAT(FROM(p),p)
#endif
		-> s = FROM(p); head[s] = HEAD(hx[p]); chunk[p] = s+1; what[p] = VALUES(s)*17 + 256*ep; s = 0 }
	:: d_step { NS > 2 && !over && !dead[p] && p == 0 && hs[p] == 1 && chunk[p] == 0 && !ISCOPIED(1,p) &&
#if defined(M_NOPRE) || defined(M_LATE)
		(ISAT(1,p) || c[1] > B(hx[p]))
#else
		ISAT(1,p)
#endif
		-> head[1] = HEAD(hx[p]); chunk[p] = 2; what[p] = VALUES(1)*17 + 256*ep }
	/* the helper thread */
	:: d_step { !dead[p] && hs[p] == 1 && chunk[p] -> s = chunk[p]-1; put(s,p,hx[p]); s = 0 }
	:: d_step { !dead[p] && hs[p] == 1 && wrote[p] == TO(p)-FROM(p) ->
#ifdef M_NOFSYNC
		dirty[PART(hx[p],p)] = 1;
#endif
		hs[p] = 2 }
	:: d_step { !dead[p] && hs[p] == 2 -> part[PART(hx[p],p)] = 2;
#ifdef M_NODIRSYNC
		hs[p] = 4 }
#else
		hs[p] = 3 }
#endif
	:: d_step { !dead[p] && hs[p] == 3 -> part[PART(hx[p],p)] = 1; hs[p] = 4 }
	:: d_step { !dead[p] && hs[p] == 4 -> report(p,hx[p],1);
#ifdef M_KEEPOWN                              /* a pserver counts the parts that it has                   */
		i_ = 0; do :: i_ < NX -> if :: p == 1 && i_ != hx[p] -> part[PART(i_,p)] = 0 :: else fi; i_++ :: else -> break od;
		check(); i_ = 0;
#endif
		give_up(p) }
	:: d_step { !dead[p] && hs[p] == 5 -> give_up(p) }
	:: d_step { !dead[p] && fails > 0 && hs[p] > 0 && hs[p] < 4 -> fails--;   /* the disk is full: it costs the snapshot */
		part[PART(hx[p],p)] = 0; report(p,hx[p],0);
#ifdef M_FAILHOLD
		if :: hs[p] == 1 -> hs[p] = 6 :: else -> give_up(p) fi
#else
		give_up(p)
#endif
		}
#ifdef M_REUSE
	:: d_step { !dead[p] && stale[p] && chunk[p] && hs[p] == 1 -> stale[p] = 0; chunk[p] = 0; what[p] = 0 }
#endif
	:: d_step { !dead[1] && p == 1 && len(to1) > 0 -> to1?m_,j_;
		if :: m_ == ORDER -> begin(1,j_)
		:: m_ == REMOVE -> part[PART(j_,1)] = 0; bad[PART(j_,1)] = 0;
			file[NAME(j_)*NS+NS-1] = 0; check()
		fi; i_ = 0; j_ = 0 }
	od }

#define MAYORDER (!over && !dead[0] && rs == 0 && hs[0] == 0)
#ifdef M_MANFIRST                             /* the registrar's own part is enough                       */
#define HASPARTS (rp & 1)
#else
#define HASPARTS (rp == 3)
#endif
inline order(b) {
	rb = b; rx = X(ep,rb); rp = 0; rs = 1;
#ifdef ASYNC                                  /* before anything is copied: what it begins with is in all */
	rpos[0] = cur[0]-1; rpos[NT-1] = cur[NT-1]-1;
#else
	rpos[0] = rb;                         /* said with STEP b: where the data after it begin          */
#endif
	if :: !dead[1] -> to1!ORDER,rx :: else fi;
	begin(0,rx); i_ = 0 }

proctype registrar() {
end:	do
#ifdef ASYNC
	:: d_step { MAYORDER && rb < MAXB && nfull(to1) -> order(rb+1) }
#else
	:: d_step { MAYORDER && rb < cur[0]-1 && c[0] < cur[0] && c[1] < cur[0] && nfull(to1) -> order(cur[0]-1) }
	:: d_step { MAYORDER && rb < cur[0] && cur[0] <= STEPS && nfull(to1) -> order(cur[0]) }
#endif
	:: d_step { !dead[0] && len(to0) > 0 -> to0?m_,j_,ok_; registrar_has(1,j_,ok_); j_ = 0; ok_ = 0 }
	:: d_step { !over && !dead[0] && rs == 1 && HASPARTS ->
		man[rx] = 2; rs = 2; check(); i_ = 0;
#if defined(M_POSNOW)                         /* where the trainers are when the manifest is written      */
		rpos[0] = cur[0]-1; rpos[NT-1] = cur[NT-1]-1;
#endif
		mpos[rx*NT] = rpos[0]; mpos[rx*NT+NT-1] = rpos[NT-1] }
	:: d_step { !over && !dead[0] && rs == 1 && HASPARTS && fails > 0 -> fails--; rs = 0; rp = 0 }
	:: d_step { !dead[0] && rs == 2 -> man[rx] = 1; rs = 3; rp = 0 }
	:: d_step { !over && !dead[0] && rs == 3 && nfull(to1) ->
		oldest();
		if :: k_ == NX -> rs = 0
		:: else -> ry = k_; walk(0);
			assert(new_ != ry);           /* P: the newest snapshot stays, until a newer is durable   */
#ifdef M_PARTSFIRST
			part[PART(ry,0)] = 0; man[ry] = 3; rs = 4; check()
#else
			man[ry] = 3; rs = 4
#endif
		fi; i_ = 0; k_ = 0; e_ = 0; b_ = 0; n_ = 0; new_ = 0; ok_ = 0
#ifdef M_RMNOSYNC                             /* parts go when the manifest is unlinked, durably or not   */
		; if :: rs == 4 -> part[PART(ry,0)] = 0 :: else fi
#endif
		}
	:: d_step { !dead[0] && rs == 4 && nfull(to1) ->
		man[ry] = 0; part[PART(ry,0)] = 0; bad[PART(ry,0)] = 0;
		file[NAME(ry)*NS] = 0; if :: NS > 2 -> file[NAME(ry)*NS+1] = 0 :: else fi; mpos[ry*NT] = 0; mpos[ry*NT+NT-1] = 0;
		if :: !dead[1] -> to1!REMOVE,ry :: else fi; ry = 0; rs = 3 }
	od }

inline die(p,kept) {                          /* what is not synced is lost, or it was kept               */
	kills--; dead[p] = 1; give_up(p);
	do :: len(to1) > 0 -> to1?_,_ :: len(to1) == 0 -> break od;
	do :: len(to0) > 0 -> to0?_,_,_ :: len(to0) == 0 -> break od;
	i_ = 0;
	do :: i_ < NX ->
		if :: part[i_*2+p] == 2 -> part[i_*2+p] = kept :: else fi;
#ifdef M_NOFSYNC
		if :: dirty[i_*2+p] && !kept -> part[i_*2+p] = 0 :: else fi;
#endif
		if :: p == 0 && man[i_] == 2 -> man[i_] = kept
		:: p == 0 && man[i_] == 3 -> man[i_] = 1-kept      /* kept: the unlink                    */
		:: else fi;
		i_++
	:: else -> break od;
	if :: p == 0 -> rs = 0; rx = 0; rp = 0; ry = 0; rpos[0] = 0; rpos[NT-1] = 0 :: else fi;
	check(); i_ = 0 }

inline load() {                               /* P: the state is of one border, at every slice            */
	j_ = new_; i_ = 0;
	do :: i_ < NS ->
		if :: j_ == 0 -> c[i_] = 0; c[C(NT-1,i_)] = 0
		:: else ->
			k_ = file[NAME(j_)*NS+i_] & 15;
			assert(!bad[PART(j_,ONEOF(i_,1))]);
			assert(file[NAME(j_)*NS+i_] / 256 == j_/BS);          /* P: ... and one history           */
			assert((file[NAME(j_)*NS+i_] & 240) == 16*k_);        /* P: values, state and counters    */
			c[i_] = k_ % 4;
#ifdef ASYNC
			if :: NT > 1 -> c[C(NT-1,i_)] = k_ / 4 :: else fi
#else
			assert(k_ == B(j_))
#endif
		fi;
		i_++
	:: else -> break od;
	i_ = 0;
	do :: i_ < NT ->
		cur[i_] = mpos[j_*NT+i_]+1;
		/* P: whatever a trainer will not push again is in each slice, and nothing that it has not pushed */
		assert(ALLIN(i_,cur[i_]-1));
#ifndef ASYNC
		assert(cur[0] == c[0]+1);
#endif
#ifdef M_PUSHALL
		again[C(i_,0)] = (c[C(i_,0)] == cur[i_]); again[C(i_,NS-1)] = (c[C(i_,NS-1)] == cur[i_]);
#endif
		do :: ALLIN(i_,cur[i_]) -> cur[i_]++ :: else -> break od;
		i_++
	:: else -> break od }
inline leave(p) {                             /* who survived: its helper may be in the middle of something */
	if :: !dead[p] && hs[p] > 0 ->
#ifdef M_REUSE
		if :: chunk[p] -> stale[p] = 1 :: else fi; give_up(p)
#else
		if :: hs[p] == 1 -> hs[p] = 5 :: hs[p] == 4 -> give_up(p) :: else fi
#endif
	:: else fi }
inline rollback() {
	walk(1);
	ep++; base[ep] = new_; rb = 0;
	if :: new_ == NX -> over = 1; base[ep] = 0; assert(damage < DAMAGE)      /* P: there is one to go back to */
	:: else -> leave(0); leave(1); load(); dead[0] = 0; dead[1] = 0 fi;
	rs = 0; rp = 0; rx = 0;
	do :: len(to1) > 0 -> to1?_,_ :: len(to1) == 0 -> break od;
	do :: len(to0) > 0 -> to0?_,_,_ :: len(to0) == 0 -> break od;
	i_ = 0; j_ = 0; k_ = 0; e_ = 0; b_ = 0; n_ = 0; new_ = 0; ok_ = 0 }

proctype fate(byte p) {
end:	do
	:: d_step { !over && !dead[p] && kills > 0 -> die(p,0) }
	:: d_step { !over && !dead[p] && kills > 0 -> die(p,1) }
	:: d_step { !over && p == 0 && (dead[0] || dead[1]) && (dead[0] || rs < 2) -> rollback() }
	:: d_step { damage > 0 && part[PART(rx,p)] == 1 && man[rx] == 1 && !bad[PART(rx,p)] && rx > 0 ->
		damage--; bad[PART(rx,p)] = 1 }
	od }

proctype judge() {                            /* P: a snapshot ends, a failing disk stops nobody, and all gets done */
	timeout -> assert(over || (cur[0] > STEPS && cur[NT-1] > STEPS));
	assert(over || (rs == 0 && hs[0] == 0 && hs[1] == 0)) }

init { atomic { byte t;
	part[0] = 1; part[1] = 1; man[0] = 1;         /* the initial values: a snapshot like any                  */
	do :: t < NT -> run slice(0,0,t); run slice(NS-1,1,t); if :: NS > 2 -> run slice(1,0,t) :: else fi; t++ :: else -> break od;
	run pserver(0); run pserver(1); run registrar(); run fate(0); run fate(1); run judge(); t = 0;
	select(kills : 0 .. KILLS); select(fails : 0 .. FAILS); select(damage : 0 .. DAMAGE) } }
