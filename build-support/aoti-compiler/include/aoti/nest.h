// What generated loop nests are made of: vector loops with tails, accumulators, guarded loads, checked indices.
// Knows nothing of particular kernels.
#pragma once

#include "math.h"
#include "vec.h"
#if AOTI_GPU
#include "gpu/run.h"
#else
#include "run.h"
#endif

AOTI_NAMESPACE_BEGIN

// Which of several independent accumulators a step feeds.
template <int I> struct Slot {
  static constexpr int index = I;
};

#if !AOTI_GPU
// body(lanes, i, slot) over [begin, end): whole vectors, then one tail.
template <int W, class Body> AOTI_INLINE void over(i64 begin, i64 end, const Body &body) {
  i64 i = begin;
  for (; i + W <= end; i += W) body(Full<W>{}, i, Slot<0>{});
  if constexpr (W > 1)
    if (i < end) body(Tail<W>{int(end - i)}, i, Slot<0>{});
}

// The same for all of so many steps, or for a part that begins behind a whole number of vectors and ends so or with the last step.
// The body is not compiled for lanes that it is never given.
template <int W, i64 Count, class Body> AOTI_INLINE void over(i64 begin, i64 end, const Body &body) {
  constexpr int rest = int(Count % W);
  i64 i = begin;
  if constexpr (Count >= W)
    for (; i + W <= end; i += W) body(Full<W>{}, i, Slot<0>{});
  if constexpr (rest > 0)
    if (i < end) body(Tail<W>{rest}, i, Slot<0>{});
}

// As `over`, with four steps at a time in different slots, so that sums do not wait for each other.
template <int W, class Body> AOTI_INLINE void over_slots(i64 begin, i64 end, const Body &body) {
  i64 i = begin;
  for (; i + 4 * W <= end; i += 4 * W) {
    body(Full<W>{}, i, Slot<0>{});
    body(Full<W>{}, i + W, Slot<1>{});
    body(Full<W>{}, i + 2 * W, Slot<2>{});
    body(Full<W>{}, i + 3 * W, Slot<3>{});
  }
  over<W>(i, end, body);
}
// The same for all of [0, Count).
template <int W, i64 Count, class Body> AOTI_INLINE void over_slots(const Body &body) {
  constexpr i64 in_slots = Count / (4 * W) * (4 * W);
  if constexpr (in_slots > 0)
    for (i64 i = 0; i < in_slots; i += 4 * W) {
      body(Full<W>{}, i, Slot<0>{});
      body(Full<W>{}, i + W, Slot<1>{});
      body(Full<W>{}, i + 2 * W, Slot<2>{});
      body(Full<W>{}, i + 3 * W, Slot<3>{});
    }
  over<W, Count - in_slots>(in_slots, Count, body);
}

#endif

// --- one element for all lanes ---------------------------------------------------------------------------------------

// The value of a one-lane vector or mask in every lane.
template <class L, class T> AOTI_INLINE auto spread(L lanes, Vec<T, 1> a) { return broadcast(lanes, a.v); }
template <class L> AOTI_INLINE Mask<L::width> spread(L lanes, Mask<1> a) { return broadcast(lanes, lane(a, 0)); }
template <class L, class T> AOTI_INLINE auto uniform(L lanes, const T *p) { return spread(lanes, load(Full<1>{}, p)); }

template <class T> AOTI_INLINE T lowest_of() {
  if constexpr (is_same<T, f32>)
    return -__builtin_inff();
  else if constexpr (is_same<T, f64>)
    return -__builtin_inf();
  else if constexpr (!is_signed<T>)
    return 0;
  else
    return T(T(1) << (sizeof(T) * 8 - 1));
}
template <class T> AOTI_INLINE T highest_of() {
  if constexpr (is_float<T>)
    return -lowest_of<T>();
  else
    return T(~lowest_of<T>());
}

#if !AOTI_GPU
// --- accumulators ----------------------------------------------------------------------------------------------------
// add(lanes, slot, x) for each step, value() -> Vec per lane, result() -> Vec<T, 1> over all lanes.

template <class T, int W> struct SumAccumulator {
  Vec<T, W> part[4];
  AOTI_INLINE SumAccumulator() {
    for (auto &p : part) p = splat<W>(T(0));
  }
  template <class L, int S> AOTI_INLINE void add(L lanes, Slot<S>, Vec<T, W> x) {
    part[S] = part[S] + select_tail(lanes, x, T(0));
  }
  AOTI_INLINE Vec<T, W> value() const { return (part[0] + part[1]) + (part[2] + part[3]); }
  AOTI_INLINE Vec<T, 1> result() const { return {reduce_add(value())}; }
};

template <class T, int W> struct ProdAccumulator {
  Vec<T, W> part[4];
  AOTI_INLINE ProdAccumulator() {
    for (auto &p : part) p = splat<W>(T(1));
  }
  template <class L, int S> AOTI_INLINE void add(L lanes, Slot<S>, Vec<T, W> x) {
    part[S] = part[S] * select_tail(lanes, x, T(1));
  }
  AOTI_INLINE Vec<T, W> value() const { return (part[0] * part[1]) * (part[2] * part[3]); }
  AOTI_INLINE Vec<T, 1> result() const { return {reduce_mul(value())}; }
};

template <class T, int W> struct MaxAccumulator {
  Vec<T, W> part[4];
  AOTI_INLINE MaxAccumulator() {
    for (auto &p : part) p = splat<W>(lowest_of<T>());
  }
  template <class L, int S> AOTI_INLINE void add(L lanes, Slot<S>, Vec<T, W> x) {
    part[S] = maximum(part[S], select_tail(lanes, x, lowest_of<T>()));
  }
  AOTI_INLINE Vec<T, W> value() const { return maximum(maximum(part[0], part[1]), maximum(part[2], part[3])); }
  AOTI_INLINE Vec<T, 1> result() const { return {reduce_max(value())}; }
};

template <class T, int W> struct MinAccumulator {
  Vec<T, W> part[4];
  AOTI_INLINE MinAccumulator() {
    for (auto &p : part) p = splat<W>(highest_of<T>());
  }
  template <class L, int S> AOTI_INLINE void add(L lanes, Slot<S>, Vec<T, W> x) {
    part[S] = minimum(part[S], select_tail(lanes, x, highest_of<T>()));
  }
  AOTI_INLINE Vec<T, W> value() const { return minimum(minimum(part[0], part[1]), minimum(part[2], part[3])); }
  AOTI_INLINE Vec<T, 1> result() const { return {reduce_min(value())}; }
};

template <int W> struct AnyAccumulator {
  Mask<W> part{splat<W>(i32(0))};
  template <class L, int S> AOTI_INLINE void add(L lanes, Slot<S>, Mask<W> x) {
    part = part | select_tail(lanes, x, false);
  }
  AOTI_INLINE Mask<W> value() const { return part; }
  AOTI_INLINE Mask<1> result() const { return broadcast(Full<1>{}, any(part)); }
};

template <int W> struct AllAccumulator {
  Mask<W> part{splat<W>(i32(-1))};
  template <class L, int S> AOTI_INLINE void add(L lanes, Slot<S>, Mask<W> x) {
    part = part & select_tail(lanes, x, true);
  }
  AOTI_INLINE Mask<W> value() const { return part; }
  AOTI_INLINE Mask<1> result() const { return broadcast(Full<1>{}, all(part)); }
};

template <int W> struct ParityAccumulator {
  Mask<W> part{splat<W>(i32(0))};
  template <class L, int S> AOTI_INLINE void add(L lanes, Slot<S>, Mask<W> x) {
    part = part ^ select_tail(lanes, x, false);
  }
  AOTI_INLINE Mask<W> value() const { return part; }
  AOTI_INLINE Mask<1> result() const {
    bool odd = false;
    for (int i = 0; i < W; ++i) odd = odd != lane(part, i);
    return broadcast(Full<1>{}, odd);
  }
};

template <class T, int W> struct XorAccumulator {
  Vec<T, W> part{splat<W>(T(0))};
  template <class L, int S> AOTI_INLINE void add(L lanes, Slot<S>, Vec<T, W> x) {
    part = part ^ select_tail(lanes, x, T(0));
  }
  AOTI_INLINE Vec<T, W> value() const { return part; }
  AOTI_INLINE Vec<T, 1> result() const { return {reduce_xor(part)}; }
};

// The first position of the extreme value; NaN beats every number.
template <class T, int W, bool Max> struct ArgAccumulator {
  Vec<T, W> best{splat<W>(Max ? lowest_of<T>() : highest_of<T>())};
  Vec<i64, W> position{splat<W>(i64(-1))};
  template <class L, int S> AOTI_INLINE void add(L lanes, Slot<S>, Vec<T, W> x, Vec<i64, W> at) {
    Mask<W> better = (Max ? x > best : x < best) | (position < i64(0));
    if constexpr (is_float<T>) better = better | (isnan(x) & ~isnan(best));
    better = select_tail(lanes, better, false);
    best = select(better, x, best);
    position = select(better, at, position);
  }
  AOTI_INLINE Vec<i64, W> value() const { return position; }
  AOTI_INLINE Vec<i64, 1> result() const {
    T value = lane(best, 0);
    i64 at = lane(position, 0);
    for (int i = 1; i < W; ++i) {
      T x = lane(best, i);
      i64 p = lane(position, i);
      if (p < 0) continue;
      bool x_nan = x != x, value_nan = value != value;
      bool wins = at < 0 || (x_nan && !value_nan) || (!value_nan && (Max ? x > value : x < value));
      bool ties = x == value || (x_nan && value_nan);
      if (wins || (ties && p < at)) value = x, at = p;
    }
    return {at};
  }
};

#endif

// --- guarded access --------------------------------------------------------------------------------------------------

#if AOTI_GPU
// Lanes [low, high) of p, Step elements apart, where `some` holds; `fill` elsewhere. Only those lanes are read.
template <i64 Step = 1, class L, class T, class F>
AOTI_INLINE auto load_between(L lanes, const T *p, i64 low, i64 high, bool some, F fill) {
  constexpr int W = L::width;
  auto result = broadcast(lanes, fill);
  if (!some) return result;
  if constexpr (Step == 1)
    if (low <= 0 && high >= W) return load(lanes, p);
  i64 last = min_i64(high, i64(detail::used(lanes)));
  auto read = detail::Element<T>::decode(detail::fill<W, detail::raw_of<T>>(
      Full<W>{}, [&](int i) { return i >= low && i < last ? detail::peek(p + i * Step) : detail::raw_of<T>(0); }));
  Vec<i64, W> at = iota(lanes, 0);
  return select((at >= low) & (at < last), read, result);
}
// The first `left` lanes of p, the others `jump` elements further on. Only those elements are read.
template <class L, class T> AOTI_INLINE auto load_wrapped(L lanes, const T *p, i64 left, i64 jump) {
  constexpr int W = L::width;
  if (left >= W) return load(lanes, p);
  return detail::Element<T>::decode(detail::fill<W, detail::raw_of<T>>(
      lanes, [&](int i) { return detail::peek(p + (i < left ? i64(i) : i + jump)); }));
}
// Elements at `index` where `mask` holds, `fill` elsewhere. Only those elements are read.
template <class L, class T, class I, class F>
AOTI_INLINE auto gather_where(L lanes, const T *p, Vec<I, L::width> index, Mask<L::width> mask, F fill) {
  Mask<L::width> live = mask & active(lanes);
  auto read = detail::Element<T>::decode(detail::fill<L::width, detail::raw_of<T>>(Full<L::width>{}, [&](int i) {
    return lane(live, i) ? detail::peek(p + lane(index, i)) : detail::raw_of<T>(0);
  }));
  return select(mask, read, broadcast(lanes, fill));
}
#else
// Lanes [low, high) of p, Step elements apart, where `some` holds; `fill` elsewhere. Only those lanes are read. Inside a
// border all lanes are there, and the load is as fast as one without bounds.
template <i64 Step = 1, class L, class T, class F>
AOTI_INLINE auto load_between(L lanes, const T *p, i64 low, i64 high, bool some, F fill) {
  constexpr int W = L::width;
  auto result = broadcast(lanes, fill);
  if (!some || high <= 0 || low >= W) return result;
  if constexpr (W == 1)
    return load(lanes, p);
  else {
    if (low <= 0 && high >= W) return load_every<Step>(lanes, p);
    const i32 first = i32(max_i64(low, 0)), last = i32(min_i64(high, i64(detail::used(lanes))));
    const Vec<i32, W> at = detail::count_lanes<W>();
    const Mask<W> live = (at >= first) & (at < last);
    const detail::raw_of<T> *from = (const detail::raw_of<T> *)p;
    // Without instructions for masks of narrow elements, registers of these come from both ends of a window.
    if constexpr (Step == 1 && !AOTI_AVX512 && detail::kReadsAnyAddress && sizeof(T) < 4 && W * sizeof(T) <= 16)
      return select(live, detail::Element<T>::decode(detail::load_window<W>(from, first, last)), result);
    else if constexpr (Step == 1)
      return select(live, detail::Element<T>::decode(detail::load_live(from, live)), result);
    else
      return select(live, detail::Element<T>::decode(detail::gather_live(from, at * i32(Step), live)), result);
  }
}

// The first `left` lanes of p, the others `jump` elements further on. Only those elements are read.
template <class L, class T> AOTI_INLINE auto load_wrapped(L lanes, const T *p, i64 left, i64 jump) {
  constexpr int W = L::width;
  const i64 used = detail::used(lanes);
  if constexpr (W == 1)
    return load(lanes, p);
  else {
    if (left >= used) return load(lanes, p);
    const Vec<i32, W> at = detail::count_lanes<W>();
    const Mask<W> before = at < i32(left), behind = (at >= i32(left)) & (at < i32(used));
    const detail::raw_of<T> *from = (const detail::raw_of<T> *)p;
    return detail::Element<T>::decode(
        select(before, detail::load_live(from, before), detail::load_live(from + jump, behind)));
  }
}

// Elements at `index` where `mask` holds, `fill` elsewhere. Only those elements are read.
template <class L, class T, class I, class F>
AOTI_INLINE auto gather_where(L lanes, const T *p, Vec<I, L::width> index, Mask<L::width> mask, F fill) {
  auto result = broadcast(lanes, fill);
  const Mask<L::width> live = mask & active(lanes);
  if (!any(live)) return result;
  return select(live, detail::Element<T>::decode(detail::gather_live((const detail::raw_of<T> *)p, index, live)), result);
}
#endif

// Whether 0 <= coordinate < size.
template <class I, int W> AOTI_INLINE Mask<W> inside(Vec<I, W> coordinate, i64 size) {
  return (coordinate >= I(0)) & (coordinate < I(size));
}

#if AOTI_AVX512 && !AOTI_GPU
namespace detail {

// The pixels of a plane in the lanes of one channel, the others as they are.
template <int C, int Channel, int... I> AOTI_INLINE Vec<f32, 16> with_channel(Vec<f32, 16> all, Vec<f32, 16> plane, Indices<I...>) {
  return {shuffled<(I % C == Channel ? 16 + I / C : I)...>(all.v, plane.v)};
}
template <int C, int... Channel>
AOTI_INLINE Vec<f32, 16> load_whole_pixels(Vec<f32, 16> all, const f32 *p, i64 plane, Indices<Channel...>) {
  ((all = with_channel<C, Channel>(all, load_raw(Tail<16>{16 / C}, p + Channel * plane), indices<16>{})), ...);
  return all;
}

} // namespace detail
#endif

// As `load_interleaved` from a first channel on, of pixels of C channels, a part of the lanes, of which the first `Planes` are there:
// of pixels [low, high), counted from that of the first lane, where `some` holds; `fill` elsewhere. Only those elements are read.
template <int C, int Planes, class L, class T, class F>
AOTI_INLINE auto load_image(L lanes, const T *p, i32 plane, i64 low, i64 high, bool some, F fill) {
  constexpr int W = L::width;
  const auto result = broadcast(lanes, fill);
  if (!some || high <= 0 || low >= W) return result;
#if AOTI_AVX512 && !AOTI_GPU
  if constexpr (is_same<T, f32> && is_same<L, Full<16>>)
    if (low <= 0 && high >= W / C) return detail::load_whole_pixels<C>(result, p, plane, indices<Planes>{});
#endif
  const auto at = iota32(lanes, 0);
  const auto pixel = floor_div_by<C>(at), channel = remainder_by<C>(at);
  const i32 first = i32(max_i64(low, 0)), last = i32(min_i64(high, W));
  const auto is_inside = (pixel >= first) & (pixel < last) & inside(channel, Planes);
  return gather_where(lanes, p, pixel + channel * plane, is_inside, fill);
}

// False in every lane: what isnan and isinf give for integers.
template <class T, int W> AOTI_INLINE Mask<W> no_lanes(Vec<T, W>) { return {splat<W>(i32(0))}; }
template <int W> AOTI_INLINE Mask<W> no_lanes(Mask<W>) { return {splat<W>(i32(0))}; }

namespace detail {

// Notes the first of these lanes that is bad.
template <int W>
#if AOTI_GPU
AOTI_INLINE
#else
AOTI_NOINLINE
#endif
void note_index(const Run &run, Vec<i64, W> index, Mask<W> bad, i64 size, int site, bool wraps) {
  int at = 0;
  while (at < W - 1 && !lane(bad, at)) ++at;
  note_fault(run, {site + 1, wraps, lane(index, at), size});
}

// `given` is `index` as it was before negative ones were counted from the end. Those outside are noted, and become 0.
template <int W>
#if AOTI_GPU
AOTI_INLINE
#else
AOTI_NOINLINE
#endif
Vec<i64, W> replaced_index(const Run &run, Vec<i64, W> index, Vec<i64, W> given, Mask<W> used, i64 size, int site, bool wraps) {
  const Mask<W> bad = ((index < i64(0)) | (index >= size)) & used;
  if (any(bad)) note_index<W>(run, given, bad, size, site, wraps);
  return select(bad, splat<W>(i64(0)), index);
}

template <class L>
AOTI_INLINE Vec<i64, L::width> checked_index(L lanes, const Run &run, Vec<i64, L::width> index,
                                             Vec<i64, L::width> given, i64 size, int site, bool wraps) {
  // What is negative, or more than the last.
  if (__builtin_expect(any_negative(select_tail(lanes, index | ((size - 1) - index), i64(0))), 0))
    index = replaced_index(run, index, given, active(lanes), size, site, wraps);
  return select_tail(lanes, index, i64(0));
}

} // namespace detail

// An index into a dimension of `size`. One outside is noted as the fault of operator `site`, and replaced by 0, so that
// nothing outside is touched.
template <class L>
AOTI_INLINE Vec<i64, L::width> check_index(L lanes, const Run &run, Vec<i64, L::width> index, i64 size, int site) {
  return detail::checked_index(lanes, run, index, index, size, site, false);
}
// As `check_index`, but negative ones count from the end.
template <class L>
AOTI_INLINE Vec<i64, L::width> wrap_index(L lanes, const Run &run, Vec<i64, L::width> index, i64 size, int site) {
  return detail::checked_index(lanes, run, select(index < i64(0), index + size, index), index, size, site, true);
}

AOTI_NAMESPACE_END
