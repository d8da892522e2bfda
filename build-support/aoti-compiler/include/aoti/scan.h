// Running reductions along one axis of [outer, length, inner] tensors. On processors a vector has neighbouring elements of a
// row where what comes before them can be added afterwards, else one element of each of several rows.
#pragma once

#include "rows.h"

AOTI_NAMESPACE_BEGIN

// next(a, x): what is known of the elements before, and one more. Where order makes no difference but for rounding,
// `neutral` changes nothing.
struct ScanSum {
  static constexpr bool kAnyOrder = true;
  template <class T> static AOTI_INLINE T neutral() { return is_float<T> ? T(-0.0f) : T(0); }
  template <class T, int W> static AOTI_INLINE Vec<T, W> next(Vec<T, W> a, Vec<T, W> x) { return a + x; }
};
// Not in any order: parts of a row may overflow where the whole does not.
struct ScanProd {
  static constexpr bool kAnyOrder = false;
  template <class T, int W> static AOTI_INLINE Vec<T, W> next(Vec<T, W> a, Vec<T, W> x) { return a * x; }
};
struct ScanLogSumExp {
  static constexpr bool kAnyOrder = false;
  template <class T, int W> static AOTI_INLINE Vec<T, W> next(Vec<T, W> a, Vec<T, W> x) {
    const Mask<W> is_a = a > x;
    const Vec<T, W> high = select(is_a, a, x), low = select(is_a, x, a);
    // Equal infinities would give infinity minus infinity.
    const Mask<W> ends = (high == low) & ~isfinite(high);
    return select(isnan(a) | isnan(x), a + x, select(ends, high, high + log1p(exp(low - high))));
  }
};

// Whether x takes over: a later equal element does, and NaN stays. The extreme of two of which neither is NaN, in order.
struct ScanMax {
  template <class T, int W> static AOTI_INLINE Vec<T, W> of_numbers(Vec<T, W> a, Vec<T, W> b) { return larger(a, b); }
  template <class T, int W> static AOTI_INLINE Mask<W> replaces(Vec<T, W> x, Vec<T, W> best) {
    if constexpr (is_float<T>) return (x >= best) | isnan(x);
    return x >= best;
  }
};
struct ScanMin {
  template <class T, int W> static AOTI_INLINE Vec<T, W> of_numbers(Vec<T, W> a, Vec<T, W> b) { return smaller(a, b); }
  template <class T, int W> static AOTI_INLINE Mask<W> replaces(Vec<T, W> x, Vec<T, W> best) {
    if constexpr (is_float<T>) return (x <= best) | isnan(x);
    return x <= best;
  }
};

#if AOTI_GPU
// A thread has a row.
template <class Op, class T>
AOTI_INLINE void scan(const Run &run, const T *in, T *out, i64 outer, i64 length, i64 inner) {
  parallel(run, outer * inner, 1, [&](i64 begin, i64 end, i64) {
    for (i64 u = begin; u < end; ++u) {
      const i64 base = u / inner * length * inner + u % inner;
      Vec<computed<T>, 1> state{};
      for (i64 i = 0; i < length; ++i) {
        const Vec<computed<T>, 1> x{read(in + base + i * inner)};
        state = i == 0 ? x : Op::next(state, x);
        write(out + base + i * inner, state.v);
      }
    }
  });
}
template <class Op, class T>
AOTI_INLINE void scan_extreme(const Run &run, const T *in, T *out, i64 *index, i64 outer, i64 length, i64 inner) {
  parallel(run, outer * inner, 1, [&](i64 begin, i64 end, i64) {
    for (i64 u = begin; u < end; ++u) {
      const i64 base = u / inner * length * inner + u % inner;
      Vec<computed<T>, 1> best{};
      i64 at = 0;
      for (i64 i = 0; i < length; ++i) {
        const Vec<computed<T>, 1> x{read(in + base + i * inner)};
        if (i == 0 || lane(Op::replaces(x, best), 0)) best = x, at = i;
        write(out + base + i * inner, best.v);
        index[base + i * inner] = at;
      }
    }
  });
}
#else
namespace detail {

// The last lane of all, everywhere.
template <class T, int W, int... I> AOTI_INLINE auto spread_last(Vec<T, W> a, Indices<I...>) {
  return Vec<T, W>{shuffled<(I - I + W - 1)...>(a.v, a.v)};
}
template <class T, int W> AOTI_INLINE Vec<T, W> spread_last(Vec<T, W> a) {
  if constexpr (W == 1)
    return a;
  else if constexpr (shape_of<T, W> == kPair) {
    const Vec<T, W / 2> last = spread_last(a.hi);
    return {last, last};
  } else
    return spread_last(a, indices<W>{});
}
// Lanes moved up by so many places, behind those of `fill`.
template <int By, class T, int W, int... I> AOTI_INLINE Vec<T, W> moved_up(Vec<T, W> a, Vec<T, W> fill, Indices<I...>) {
  return {shuffled<(I < By ? W + I : I - By)...>(a.v, fill.v)};
}
// Each lane merged with all before it: twice as many at each step (Hillis and Steele 1986).
template <int By = 1, class T, int W, class Merge>
AOTI_INLINE Vec<T, W> running(Vec<T, W> a, Vec<T, W> neutral, const Merge &merge) {
  if constexpr (By >= W)
    return a;
  else if constexpr (shape_of<T, W> == kPair) {
    const auto low = running(a.lo, neutral.lo, merge), high = running(a.hi, neutral.hi, merge);
    return {low, merge(spread_last(low), high)};
  } else
    return running<2 * By>(merge(moved_up<By>(a, neutral, indices<W>{}), a), neutral, merge);
}

// The sums of a row, side by side.
template <class Op, class T> AOTI_INLINE void scan_row(const T *in, T *out, i64 length) {
  constexpr int W = AOTI_LANES;
  const auto neutral = splat<W>(Op::template neutral<computed<T>>());
  auto before = neutral;
  over<W>(0, length, [&](auto lanes, i64 i, auto) AOTI_LAMBDA {
    const auto own = running(load(lanes, in + i), neutral, [](auto a, auto x) { return Op::next(a, x); });
    store(lanes, out + i, Op::next(before, own));
    before = Op::next(before, spread_last(own));
  });
}
// An element of each of several rows at a time.
template <class Op, class L, class T> AOTI_INLINE void scan_rows(L lanes, const T *in, T *out, i64 length, i64 inner, i64 apart) {
  auto state = broadcast(lanes, T{});
  for (i64 i = 0; i < length; ++i) {
    const T *from = in + i * inner;
    T *to = out + i * inner;
    const auto x = apart == 1 ? load(lanes, from) : load_strided(lanes, from, apart);
    state = i == 0 ? x : Op::next(state, x);
    if (apart == 1)
      store(lanes, to, state);
    else
      store_strided(lanes, to, apart, state);
  }
}

// The extremes of a row and their places, side by side.
template <class Op, class T> AOTI_INLINE void scan_extreme_row(const T *in, T *out, i64 *index, i64 length) {
  constexpr int W = AOTI_LANES;
  auto best = splat<W>(read(in));
  i64 at = 0;
  over<W>(0, length, [&](auto lanes, i64 i, auto) AOTI_LAMBDA {
    const auto x = load(lanes, in + i);
    auto places = splat<W>(at);
    // Mostly nothing takes over.
    if (any(select_tail(lanes, Op::replaces(x, best), false))) {
      const auto numbers = [](auto a, auto b) { return Op::of_numbers(a, b); };
      const auto any_of_both = [](auto a, auto b) { return select(Op::replaces(b, a), b, a); };
      const auto first = splat<W>(lane(x, 0));
      best = any(isnan(x) | isnan(best)) ? any_of_both(best, running(x, first, any_of_both))
                                         : numbers(best, running(x, first, numbers));
      const auto own = select(Op::replaces(x, best), count_lanes<W>(), splat<W>(i32(-1)));
      const auto last = running(own, splat<W>(i32(-1)), [](auto a, auto b) { return larger(a, b); });
      places = select(last < 0, places, convert<i64>(last) + i);
      at = lane(places, W - 1);
      store(lanes, out + i, best);
      best = spread_last(best);
    } else
      store(lanes, out + i, best);
    store(lanes, index + i, places);
  });
}
template <class Op, class L, class T>
AOTI_INLINE void scan_extreme_columns(L lanes, const T *in, T *out, i64 *index, i64 length, i64 inner) {
  auto best = load(lanes, in);
  auto places = splat<L::width>(i64(0));
  for (i64 i = 0; i < length; ++i) {
    const auto x = load(lanes, in + i * inner);
    const auto takes_over = Op::replaces(x, best);
    best = select(takes_over, x, best), places = select(takes_over, splat<L::width>(i), places);
    store(lanes, out + i * inner, best);
    store(lanes, index + i * inner, places);
  }
}

// body(lanes, u, apart) for neighbouring columns, or rows `length` elements apart where these are no columns.
template <class Body> AOTI_INLINE void each_lines(i64 begin, i64 end, i64 length, i64 inner, const Body &body) {
  for (i64 u = begin; u < end;) {
    const i64 last = inner == 1 ? end : min_i64(end, u - u % inner + inner);
    const auto some = [&](auto lanes, i64 line, auto) AOTI_LAMBDA { body(lanes, line, inner == 1 ? length : i64(1)); };
    // Elements that lie apart come one by one anyway.
    if (inner == 1 && last - u <= AOTI_LANES / 4)
      over<1>(u, last, some);
    else
      over<AOTI_LANES>(u, last, some);
    u = last;
  }
}

} // namespace detail

template <class Op, class T>
AOTI_INLINE void scan(const Run &run, const T *in, T *out, i64 outer, i64 length, i64 inner) {
  if (length == 0) return;
  parallel(run, outer * inner, grain(run, 4096, length), [&](i64 begin, i64 end, i64) {
    if constexpr (Op::kAnyOrder)
      if (inner == 1) {
        for (i64 u = begin; u < end; ++u) detail::scan_row<Op>(in + u * length, out + u * length, length);
        return;
      }
    detail::each_lines(begin, end, length, inner, [&](auto lanes, i64 u, i64 apart) AOTI_LAMBDA {
      const i64 base = u / inner * length * inner + u % inner;
      detail::scan_rows<Op>(lanes, in + base, out + base, length, inner, apart);
    });
  });
}

template <class Op, class T>
AOTI_INLINE void scan_extreme(const Run &run, const T *in, T *out, i64 *index, i64 outer, i64 length, i64 inner) {
  if (length == 0) return;
  if constexpr (is_same<T, bool>) return scan_extreme<Op>(run, (const u8 *)in, (u8 *)out, index, outer, length, inner);
  else parallel(run, outer * inner, grain(run, 4096, length), [&](i64 begin, i64 end, i64) {
    if (inner == 1) {
      for (i64 u = begin; u < end; ++u)
        detail::scan_extreme_row<Op>(in + u * length, out + u * length, index + u * length, length);
      return;
    }
    detail::each_lines(begin, end, length, inner, [&](auto lanes, i64 u, i64) AOTI_LAMBDA {
      const i64 base = u / inner * length * inner + u % inner;
      detail::scan_extreme_columns<Op>(lanes, in + base, out + base, index + base, length, inner);
    });
  });
}
#endif

AOTI_NAMESPACE_END
