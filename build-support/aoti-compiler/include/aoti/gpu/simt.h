// What generated kernels are made of on a GPU: teams of threads, loops over the members of a team, accumulators that are
// combined over it, rows in shared memory. The counterpart of nest.h's loops and accumulators on processors; terms and
// effects are the same text on both.
#pragma once

#include "cluster.h"

AOTI_NAMESPACE_BEGIN

// An address that is a multiple of so many bytes.
template <int Bytes, class T> AOTI_INLINE T *aligned(T *p) { return (T *)__builtin_assume_aligned(p, Bytes); }

// Size threads that work on one position of a nest, Places positions at a time. Members of a team are neighbours, or,
// Across, neighbours are places and members lie Places threads apart: whichever way memory is contiguous. The threads of Blocks
// neighbouring blocks are one team where these are a cluster; elsewhere those of the first do all.
template <int Size, int Places, bool Across, int Blocks = 1> struct Team {
  static_assert(Blocks == 1 || (Places == 1 && !Across));
  static constexpr int blocks = Cluster<Blocks>::kParts;
  // Members, and those of a block.
  static constexpr int size = Size * blocks, own_size = Size, places = Places;
  static constexpr bool across = Across;
  // Whether a team lies within one warp and may go its own way.
  static constexpr bool in_warp = !Across && size <= kWarp;
  using Together = Cluster<Blocks>;

  AOTI_INLINE int member() const {
    if constexpr (Size == 1)
      return 0;
    else if constexpr (blocks > 1)
      return Together::rank() * Size + thread_index();
    else
      return Across ? thread_index() / Places : thread_index() % Size;
  }
  AOTI_INLINE int place() const {
    if constexpr (Places == 1)
      return 0;
    else
      return Across ? thread_index() % Places : thread_index() / Size;
  }
  // The same among those of a block.
  AOTI_INLINE int own_member() const { return blocks > 1 ? thread_index() : member(); }
  AOTI_INLINE bool leads() const { return member() == 0; }
  // Whether the block has nothing to do.
  AOTI_INLINE bool is_idle() const { return Together::is_idle(); }
  // Every block of the team is there, so that others may write to its memory.
  AOTI_INLINE void gather() const {
    if constexpr (blocks > 1) Together::part();
  }
  // What members wrote is seen by all of them.
  AOTI_INLINE void sync() const {
    if constexpr (Size == 1)
      return;
    else if constexpr (in_warp)
      warp_barrier();
    else
      Together::meet();
  }
};

// body(lanes, i, slot) over [0, end), shared out among the members: neighbours take neighbouring steps of W.
template <int W, class Team, class I, class Body> AOTI_INLINE void over(const Team &team, I end, const Body &body) {
  I i = I(team.member() * W);
  constexpr I step = I(Team::size * W);
  if constexpr (W == 1) {
    for (; i < end; i += step) body(Full<1>{}, i, Slot<0>{});
  } else {
    for (; i + W <= end; i += step) body(Full<W>{}, i, Slot<0>{});
    // Where the end is known, so is what is not needed.
    if (end % W != 0 && i < end) body(Tail<W>{int(end - i)}, i, Slot<0>{});
  }
}
// The same with four steps at a time in different slots, so that loads do not wait for sums.
template <int W, class Team, class I, class Body> AOTI_INLINE void over_slots(const Team &team, I end, const Body &body) {
  I i = I(team.member() * W);
  constexpr I step = I(Team::size * W);
  for (; i + 3 * step + W <= end; i += 4 * step) {
    body(Full<W>{}, i, Slot<0>{});
    body(Full<W>{}, I(i + step), Slot<1>{});
    body(Full<W>{}, I(i + 2 * step), Slot<2>{});
    body(Full<W>{}, I(i + 3 * step), Slot<3>{});
  }
  if (end % (4 * step) == 0) return;
  for (; i + W <= end; i += step) body(Full<W>{}, i, Slot<0>{});
  if constexpr (W > 1)
    if (end % W != 0 && i < end) body(Tail<W>{int(end - i)}, i, Slot<0>{});
}
// The elements of a row that one member has, Steps times W of them: they stay in its registers.
template <class T, int W, int Steps> struct OwnRow {
  alignas(sizeof(T) * W < 16 ? sizeof(T) * W : 16) T elements[Steps][W];
  template <int S> AOTI_INLINE T *at(Slot<S>) { return elements[S]; }
};
// How many steps of W elements a member has of a row of that length.
template <int W, int Length, class Team> constexpr int kOwnSteps = (Length + Team::size * W - 1) / (Team::size * W);
// The loop over [0, end) of rows that members keep: every step has a slot of its own.
template <int W, int Steps, int S = 0, class Team, class I, class Body>
AOTI_INLINE void over_own(const Team &team, I end, const Body &body) {
  if constexpr (S < Steps) {
    const I i = I(team.member() * W) + I(S * Team::size * W);
    // Whole steps ask nothing, as the end is known.
    if (end >= I((S + 1) * Team::size * W) || i + W <= end) body(Full<W>{}, i, Slot<S>{});
    over_own<W, Steps, S + 1>(team, end, body);
  }
}
// body(lanes) for the lanes from `i` on that are before `end`.
template <int W, class I, class Body> AOTI_INLINE void with_lanes(I i, I end, const Body &body) {
  if constexpr (W == 1)
    body(Full<1>{});
  else if (i + W <= end)
    body(Full<W>{});
  else
    body(Tail<W>{int(end - i)});
}
// The same where members of a team meet in `body`: all take one way through it, those behind the end with no lane.
template <int W, class I> AOTI_INLINE Tail<W> lanes_before(I i, I end) {
  return {end - i >= W ? W : end > i ? int(end - i) : 0};
}

// What a value is held as, W of them.
template <class T, int W> using Held = decltype(load(Full<W>{}, (const T *)nullptr));

// A tile of what is read along one axis and used along another. Rows are longer by one, so that neighbours of a column lie in
// different banks.
constexpr int kTileSide = 32;
template <class T> struct StagedTile {
  Held<T, 1> rows[kTileSide][kTileSide + 1];
};
// body(row, column) for each position of a tile; neighbouring threads have neighbouring columns.
template <class Team, class Body> AOTI_INLINE void each_of_tile(const Team &team, const Body &body) {
  constexpr int rows = Team::places / kTileSide;
  AOTI_UNROLL_TIMES(4)
  for (int step = 0; step < kTileSide / rows; ++step)
    body(step * rows + team.place() / kTileSide, team.place() % kTileSide);
}

// --- reductions over a team ------------------------------------------------------------------------------------------

// Every member's x merged where members of a warp are no power of two apart and cannot find each other by their bits: the upper half of
// them hands what it has to the lower half, by way of shared memory, until one is left.
template <class Op, class Team, class X> AOTI_INLINE X reduce_halves(const Team &team, X x) {
  static_assert(Team::across && Team::blocks == 1 && (Team::size & (Team::size - 1)) == 0);
  constexpr int half = Team::size / 2;
  alignas(16) AOTI_SHARED char memory[half * Team::places * sizeof(X)];
  X *const slots = (X *)memory;
  AOTI_UNROLL_TIMES(1)
  for (int left = half; left > 0; left /= 2) {
    const int given = thread_index() - left * Team::places;
    if (team.member() >= left && team.member() < 2 * left) slots[given] = x;
    barrier();
    if (team.member() < left) x = Op::merge(x, slots[thread_index()]);
    barrier();
  }
  if (team.leads()) slots[team.place()] = x;
  barrier();
  x = slots[team.place()];
  barrier();
  return x;
}

// What the blocks of a team have, each of which has merged what its members have.
template <class Op, class Team, class X> AOTI_INLINE X all_reduce_blocks(const Team &, X x) {
  using Together = typename Team::Together;
  constexpr int words = (sizeof(X) + 3) / 4;
  AOTI_SHARED u32 parts[Team::blocks][words];
  if (thread_index() < Team::blocks) Together::put_words(thread_index(), parts[Together::rank()], x);
  Together::meet();
  X all;
  __builtin_memcpy(&all, parts[0], sizeof all);
  AOTI_UNROLL_TIMES(8)
  for (int block = 1; block < Team::blocks; ++block) {
    X own;
    __builtin_memcpy(&own, parts[block], sizeof own);
    all = Op::merge(all, own);
  }
  Together::part();
  return all;
}

// Every member's x merged, in an order that is the same in every run; every member gets the result.
template <class Op, class Team, class X> AOTI_INLINE X all_reduce(const Team &team, X x) {
  if constexpr (Team::size == 1) return x;
  // Neighbouring members are so many threads apart. Those of a warp first merge what they have.
  constexpr int apart = Team::across ? Team::places : 1, end = Team::own_size * apart;
  if constexpr ((apart & (apart - 1)) != 0) {
    return reduce_halves<Op>(team, x);
  } else {
    AOTI_UNROLL_TIMES(8)
    for (int distance = apart; distance < (end < kWarp ? end : kWarp); distance *= 2) {
      X other = shuffle_xor(x, distance);
      x = thread_index() & distance ? Op::merge(other, x) : Op::merge(x, other);
    }
    if constexpr (end > kWarp) {
      constexpr int in_warp = apart < kWarp ? kWarp / apart : 1, left = Team::own_size / in_warp;
      alignas(16) AOTI_SHARED char memory[left * Team::places * sizeof(X)];
      X *slots = (X *)memory + team.place();
      if (team.own_member() % in_warp == 0) slots[team.own_member() / in_warp * Team::places] = x;
      barrier();
      x = slots[0];
      for (int m = 1; m < left; ++m) x = Op::merge(x, slots[m * Team::places]);
      barrier();
    }
    if constexpr (Team::blocks > 1) x = all_reduce_blocks<Op>(team, x);
    return x;
  }
}

struct SumOf {
  template <class T> static AOTI_INLINE T neutral() { return T(0); }
  template <class V> static AOTI_INLINE V merge(V a, V b) { return a + b; }
  template <class T, int W> static AOTI_INLINE T lanes(Vec<T, W> a) { return reduce_add(a); }
};
struct ProdOf {
  template <class T> static AOTI_INLINE T neutral() { return T(1); }
  template <class V> static AOTI_INLINE V merge(V a, V b) { return a * b; }
  template <class T, int W> static AOTI_INLINE T lanes(Vec<T, W> a) { return reduce_mul(a); }
};
struct MaxOf {
  template <class T> static AOTI_INLINE T neutral() { return lowest_of<T>(); }
  template <class V> static AOTI_INLINE V merge(V a, V b) { return maximum(a, b); }
  template <class T, int W> static AOTI_INLINE T lanes(Vec<T, W> a) { return reduce_max(a); }
};
struct MinOf {
  template <class T> static AOTI_INLINE T neutral() { return highest_of<T>(); }
  template <class V> static AOTI_INLINE V merge(V a, V b) { return minimum(a, b); }
  template <class T, int W> static AOTI_INLINE T lanes(Vec<T, W> a) { return reduce_min(a); }
};
struct XorOf {
  template <class T> static AOTI_INLINE T neutral() { return T(0); }
  template <class V> static AOTI_INLINE V merge(V a, V b) { return a ^ b; }
  template <class T, int W> static AOTI_INLINE T lanes(Vec<T, W> a) { return reduce_xor(a); }
};

// add(lanes, slot, x) for each step; and once every member is through, either `combine`, where lanes are steps of one place,
// whose result() -> Vec<T, 1> is over lanes and members; or `combine_lanes`, where lanes are places, which have a value() each.
template <class Op, class T, int W> struct Accumulator {
  // Steps that follow each other do not wait for each other: they have sums of their own where lanes are not enough.
  static constexpr int kParts = W >= 8 ? 1 : 4;
  Vec<T, W> part[kParts];
  Vec<T, 1> total;
  AOTI_INLINE Accumulator() {
    for (auto &p : part) p = splat<W>(Op::template neutral<T>());
  }
  template <class L, int S> AOTI_INLINE void add(L lanes, Slot<S>, Vec<T, W> x) {
    part[S % kParts] = Op::merge(part[S % kParts], select_tail(lanes, x, Op::template neutral<T>()));
  }
  AOTI_INLINE Vec<T, W> all() const {
    if constexpr (kParts == 1) return part[0];
    return Op::merge(Op::merge(part[0], part[1]), Op::merge(part[2], part[3]));
  }
  template <class Team> AOTI_INLINE void combine(const Team &team) {
    total = all_reduce<Op>(team, Vec<T, 1>{Op::lanes(all())});
  }
  template <class Team> AOTI_INLINE void combine_lanes(const Team &team) { part[0] = all_reduce<Op>(team, all()); }
  AOTI_INLINE Vec<T, W> value() const { return part[0]; }
  AOTI_INLINE Vec<T, 1> result() const { return total; }
};
template <class T, int W> using SumAccumulator = Accumulator<SumOf, T, W>;
template <class T, int W> using ProdAccumulator = Accumulator<ProdOf, T, W>;
template <class T, int W> using MaxAccumulator = Accumulator<MaxOf, T, W>;
template <class T, int W> using MinAccumulator = Accumulator<MinOf, T, W>;
template <class T, int W> using XorAccumulator = Accumulator<XorOf, T, W>;

// Booleans are numbers of one word whose merge is the operation on every bit.
template <int W, int Kind> struct MaskAccumulator {
  Mask<W> part{splat<W>(i32(Kind == 1 ? -1 : 0))};
  Mask<1> total;
  struct Merge {
    template <int N> static AOTI_INLINE Mask<N> merge(Mask<N> a, Mask<N> b) {
      return Kind == 0 ? a | b : Kind == 1 ? a & b : a ^ b;
    }
  };
  template <class L, int S> AOTI_INLINE void add(L lanes, Slot<S>, Mask<W> x) {
    part = Merge::merge(part, select_tail(lanes, x, Kind == 1));
  }
  template <class Team> AOTI_INLINE void combine(const Team &team) {
    i32 bits = Kind == 0 ? reduce_or(part.m) : Kind == 1 ? reduce_and(part.m) : reduce_xor(part.m);
    total = all_reduce<Merge>(team, Mask<1>{Vec<i32, 1>{bits}});
  }
  template <class Team> AOTI_INLINE void combine_lanes(const Team &team) { part = all_reduce<Merge>(team, part); }
  AOTI_INLINE Mask<W> value() const { return part; }
  AOTI_INLINE Mask<1> result() const { return total; }
};
template <int W> using AnyAccumulator = MaskAccumulator<W, 0>;
template <int W> using AllAccumulator = MaskAccumulator<W, 1>;
template <int W> using ParityAccumulator = MaskAccumulator<W, 2>;

// The first position of the extreme value; NaN beats every number. Without a value the position is negative.
template <class T, int W, bool Max> struct Extreme {
  Vec<T, W> best;
  Vec<i64, W> position;
};
template <class T, int W, bool Max> struct ArgAccumulator {
  using State = Extreme<T, W, Max>;
  State state{splat<W>(Max ? lowest_of<T>() : highest_of<T>()), splat<W>(i64(-1))};
  Vec<i64, 1> total;
  struct Merge {
    template <int N> static AOTI_INLINE Extreme<T, N, Max> merge(Extreme<T, N, Max> a, Extreme<T, N, Max> b) {
      Mask<N> better = Max ? b.best > a.best : b.best < a.best;
      Mask<N> equal = b.best == a.best;
      if constexpr (is_float<T>) {
        better = (better & ~isnan(a.best)) | (isnan(b.best) & ~isnan(a.best));
        equal = equal | (isnan(b.best) & isnan(a.best));
      }
      better = better | (equal & (b.position < a.position)) | (a.position < i64(0));
      better = better & (b.position >= i64(0));
      return {select(better, b.best, a.best), select(better, b.position, a.position)};
    }
  };
  // Positions rise from step to step.
  template <class L, int S> AOTI_INLINE void add(L lanes, Slot<S>, Vec<T, W> x, Vec<i64, W> at) {
    Mask<W> better = Max ? x > state.best : x < state.best;
    if constexpr (is_float<T>) better = better | (isnan(x) & ~isnan(state.best));
    better = (better | (state.position < i64(0))) & active(lanes);
    state = {select(better, x, state.best), select(better, at, state.position)};
  }
  template <int N> static AOTI_INLINE Extreme<T, 1, Max> halve(Extreme<T, N, Max> a) {
    if constexpr (N == 1)
      return a;
    else
      return halve(Merge::merge(Extreme<T, N / 2, Max>{lower(a.best), lower(a.position)},
                                Extreme<T, N / 2, Max>{upper(a.best), upper(a.position)}));
  }
  template <class Team> AOTI_INLINE void combine(const Team &team) {
    total = all_reduce<Merge>(team, halve(state)).position;
  }
  template <class Team> AOTI_INLINE void combine_lanes(const Team &team) { state = all_reduce<Merge>(team, state); }
  AOTI_INLINE Vec<i64, W> value() const { return state.position; }
  AOTI_INLINE Vec<i64, 1> result() const { return total; }
};

AOTI_NAMESPACE_END
