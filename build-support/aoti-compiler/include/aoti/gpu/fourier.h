// Discrete Fourier transforms of rows by blocks of threads, of a length that is known when the kernel is compiled: the passes of
// fourier_passes.h, with the roots that fourier.h reads, where threads take the place of lanes. The first pass reads the operand,
// the last one writes the result, and between them the numbers of a row are in shared memory, in one place: a thread has all that
// it transforms of a pass in registers before any of it is overwritten.
//
// A block has several rows where these are short, each with a team of its threads.
#pragma once

#include "../fourier_radix.h"
#include "simt.h"

AOTI_NAMESPACE_BEGIN
namespace fourier {

template <class T> using Number = Complex<T, 1>;
template <class T> AOTI_INLINE Number<T> number(T re, T im) { return {{re}, {im}}; }
template <class T> AOTI_INLINE Number<T> exchanged(Number<T> x) { return {x.im, x.re}; }
template <class T> AOTI_INLINE Number<T> conjugate(Number<T> x) { return {x.re, -x.im}; }
template <class T> AOTI_INLINE Number<T> scaled(Number<T> x, T by) { return number(x.re.v * by, x.im.v * by); }

template <class T> struct alignas(2 * sizeof(T)) Pair {
  T re, im;
};
// Complex numbers of a tensor, which begin at a multiple of their size where they are Aligned.
template <bool Aligned, class T> AOTI_INLINE Number<T> load_pair(const T *x, i64 at) {
  if constexpr (Aligned) {
    const Pair<T> own = ((const Pair<T> *)x)[at];
    return number(own.re, own.im);
  } else {
    return number(x[2 * at], x[2 * at + 1]);
  }
}
template <bool Aligned, class T> AOTI_INLINE void store_pair(T *y, i64 at, Number<T> x) {
  if constexpr (Aligned)
    ((Pair<T> *)y)[at] = {x.re.v, x.im.v};
  else
    y[2 * at] = x.re.v, y[2 * at + 1] = x.im.v;
}

// Numbers of a row between two passes. One place of seventeen is empty: threads that write as many numbers apart as a usual factor
// has then meet different banks.
template <class T> struct RowMemory {
  Pair<T> *places;
  static AOTI_CONSTEXPR u32 place(u32 at) { return at + at / 16; }
  // The place of number `at + Behind`, where `at` is a multiple of Step: what is known of it is no work of a thread's.
  template <int Behind, int Step> static AOTI_INLINE u32 place_behind(u32 at) {
    if constexpr (Behind % 16 == 0 || (Step % 16 == 0 && Behind < 16))
      return place(at) + place(Behind);
    else
      return place(at + Behind);
  }
  template <int Behind = 0, int Step = 1> AOTI_INLINE Number<T> load(int at) const {
    const Pair<T> own = places[place_behind<Behind, Step>(u32(at))];
    return number(own.re, own.im);
  }
  template <int Behind = 0, int Step = 1> AOTI_INLINE void store(int at, Number<T> x) const {
    places[place_behind<Behind, Step>(u32(at))] = {x.re.v, x.im.v};
  }
};

// Those of planes: all real parts, then all imaginary ones.
template <class T> AOTI_INLINE Number<T> load_planes(const T *planes, int count, int at) {
  return number(planes[at], planes[count + at]);
}

// Where a pass reads or writes shared memory, beside functions of the number of an element.
template <class T> struct InMemory {
  RowMemory<T> memory;
};
template <int Behind, int Step, class T>
AOTI_INLINE Number<T> load_behind(const InMemory<T> &from, int at) {
  return from.memory.template load<Behind, Step>(at);
}
template <int Behind, int Step, class Load> AOTI_INLINE auto load_behind(const Load &load, int at) { return load(at + Behind); }
template <int Behind, int Step, class T>
AOTI_INLINE void store_behind(const InMemory<T> &to, int at, Number<T> x) {
  to.memory.template store<Behind, Step>(at, x);
}
template <int Behind, int Step, class Store, class T>
AOTI_INLINE void store_behind(const Store &store, int at, Number<T> x) {
  store(at + Behind, x);
}

// What one member of a team of so many does of a pass, which overwrites what it reads where that is Shared. S and M are those of
// fourier_passes.h; First says in which order the roots are.
template <int R, int S, int M, int Team, bool First, bool Shared, class T, class Load, class Store>
AOTI_INLINE void team_pass(int member, const T *roots, const Load &load, const Store &store) {
  constexpr int count = S * M, turns = (count + Team - 1) / Team;
  Number<T> x[turns][R];
  each<turns>([&](auto turn_index) {
    constexpr int turn = decltype(turn_index)::value;
    const int at = member + Team * turn;
    if ((turn + 1) * Team <= count || at < count)
      each<R>([&](auto index) {
        constexpr int k = decltype(index)::value;
        x[turn][k] = load_behind<count * k, 1>(load, at);
      });
  });
  if constexpr (Shared) barrier();
  each<turns>([&](auto turn_index) {
    constexpr int turn = decltype(turn_index)::value;
    const int at = member + Team * turn;
    if ((turn + 1) * Team > count && at >= count) return;
    const int p = S == 1 ? at : int(u32(at) / S), q = S == 1 ? 0 : int(u32(at) % S);
    transform(x[turn]);
    each<R>([&](auto index) {
      constexpr int j = decltype(index)::value;
      Number<T> own = x[turn][j];
      if constexpr (M > 1 && j > 0) {
        if constexpr (First)
          own = times(own, load_planes(roots + 2 * (j - 1) * M, M, p));
        else
          own = times(own, load_pair<true>(roots, (R - 1) * p + j - 1));
      }
      store_behind<S * j, S == 1 ? R : 1>(store, q + S * R * p, own);
    });
  });
}

// The factors of a length, in the order of its passes: two at least.
template <int First, int... Rest> struct TeamRadices {
  static constexpr int length = First * (Rest * ...);
  // Elements of the roots of all passes.
  static constexpr int roots = [] {
    int m = length / First, count = 2 * (First - 1) * m;
    ((m /= Rest, count += m > 1 ? 2 * (Rest - 1) * m : 0), ...);
    return count;
  }();

  // From `load` to `store` by way of `memory`, which `load` may read where it is Shared.
  template <int Team, bool Shared, class T, class Load, class Store>
  static AOTI_INLINE void run(int member, RowMemory<T> memory, const T *roots, const Load &load, const Store &store) {
    constexpr int m = length / First;
    team_pass<First, 1, m, Team, true, Shared>(member, roots, load, InMemory<T>{memory});
    barrier();
    later<Team, First, m, Rest...>(member, memory, roots + 2 * (First - 1) * m, store);
  }

  template <int Team, int S, int M, int R, int... More, class T, class Store>
  static AOTI_INLINE void later(int member, RowMemory<T> memory, const T *roots, const Store &store) {
    const InMemory<T> load{memory};
    if constexpr (sizeof...(More) == 0)
      team_pass<R, S, 1, Team, false, true>(member, roots, load, store);
    else {
      constexpr int m = M / R;
      team_pass<R, S, m, Team, false, true>(member, roots, load, InMemory<T>{memory});
      barrier();
      later<Team, S * R, m, More...>(member, memory, roots + 2 * (R - 1) * m, store);
    }
  }
};

// What a row of N numbers is transformed from and to, where the roots behind those of the passes are `own`: the inverse transform is
// the forward one of numbers whose parts are exchanged, exchanged again.
template <Form F, int N, bool Aligned, class T> struct RowOfTensors {
  static constexpr bool is_inverse = F == kInverse || F == kFromHalf;
  static constexpr i64 half = 2 * (N / 2 + 1), in = F == kToHalf ? N : F == kFromHalf ? half : 2 * N;
  static constexpr i64 out = F == kFromHalf ? N : F == kToHalf ? half : 2 * N;
  const T *x, *own;
  T *y, scale;

  // Number k of all.
  AOTI_INLINE Number<T> load(int k) const {
    if constexpr (F == kForward)
      return load_pair<Aligned>(x, k);
    else if constexpr (F == kInverse)
      return exchanged(load_pair<Aligned>(x, k));
    else if constexpr (F == kToHalf)
      return number(x[k], T(0));
    else {
      const Number<T> there = load_pair<Aligned>(x, 2 * k > N ? N - k : k);
      if (k == 0 || 2 * k == N) return number(T(0), there.re.v);
      return exchanged(2 * k > N ? conjugate(there) : there);
    }
  }
  // Number k of all, of which those that are no result are left out.
  AOTI_INLINE void store(int k, Number<T> x) const {
    x = scaled(x, scale);
    if constexpr (F == kForward)
      store_pair<Aligned>(y, k, x);
    else if constexpr (F == kInverse)
      store_pair<Aligned>(y, k, exchanged(x));
    else if constexpr (F == kToHalf) {
      if (k <= N / 2) store_pair<Aligned>(y, k, x);
    } else
      y[k] = x.im.v;
  }

  // Number k of N / 2 that real ones are the parts of.
  AOTI_INLINE Number<T> load_halved(int k) const {
    constexpr int h = N / 2;
    if constexpr (F == kToHalf) {
      return load_pair<Aligned>(x, k);
    } else {
      // x[k] + x'[h - k] + i e^(2 pi i k / n) (x[k] - x'[h - k]); imaginary parts of the first and the last number do not count.
      const Number<T> a = load_pair<Aligned>(x, k), b = conjugate(load_pair<Aligned>(x, h - k));
      if (k == 0) return number(a.re.v - b.re.v, a.re.v + b.re.v);
      return exchanged(plus_turned(a + b, times(a - b, conjugate(load_planes(own, h + 1, k)))));
    }
  }
  AOTI_INLINE void store_halved(int k, Number<T> x) const { store_pair<Aligned>(y, k, exchanged(scaled(x, scale))); }
  // Number k of the first half of the transform, where `memory` has that of the N / 2 numbers:
  // z[k] + z'[h - k] - i e^(-2 pi i k / n) (z[k] - z'[h - k]), halved.
  AOTI_INLINE void unfold(int k, RowMemory<T> memory) const {
    constexpr int h = N / 2;
    const Number<T> a = memory.load(k < h ? k : 0), b = conjugate(memory.load(k > 0 ? h - k : 0));
    store_pair<Aligned>(y, k, scaled(minus_turned(a + b, times(a - b, load_planes(own, h + 1, k))), scale / 2));
  }
};

// One row by one member of its team.
template <Form F, Way By, int N, class Passes, int Team, bool Aligned, class T>
AOTI_INLINE void team_row(int member, RowMemory<T> memory, const T *roots, const RowOfTensors<F, N, Aligned, T> &row) {
  constexpr int length = Passes::length;
  if constexpr (By == kPlain) {
    Passes::template run<Team, false>(
        member, memory, roots, [&](int k) { return row.load(k); }, [&](int k, Number<T> x) { row.store(k, x); });
  } else if constexpr (By == kHalved && F == kFromHalf) {
    Passes::template run<Team, false>(
        member, memory, roots, [&](int k) { return row.load_halved(k); },
        [&](int k, Number<T> x) { row.store_halved(k, x); });
  } else if constexpr (By == kHalved) {
    Passes::template run<Team, false>(
        member, memory, roots, [&](int k) { return row.load_halved(k); }, InMemory<T>{memory});
    barrier();
    for (int k = member; k <= length; k += Team) row.unfold(k, memory);
    barrier();
  } else {
    const T *const chirp = row.own, *const spectrum = row.own + 2 * N;
    Passes::template run<Team, false>(
        member, memory, roots,
        [&](int k) { return k < N ? times(row.load(k), load_planes(chirp, N, k)) : number(T(0), T(0)); },
        [&](int k, Number<T> x) { memory.store(k, exchanged(times(x, load_planes(spectrum, length, k)))); });
    barrier();
    Passes::template run<Team, true>(
        member, memory, roots, InMemory<T>{memory},
        [&](int k, Number<T> x) {
          if (k < N) row.store(k, times(exchanged(x), load_planes(chirp, N, k)));
        });
  }
}

template <Form F, Way By, int N, class Passes, int Threads, int Rows, bool Aligned, class T>
AOTI_INLINE void all_rows(i64 rows, const T *x, const T *roots, T *y, T scale, Pair<T> *memory) {
  using Row = RowOfTensors<F, N, Aligned, T>;
  constexpr int team = Threads / Rows, size = int(RowMemory<T>::place(Passes::length - 1)) + 1;
  static_assert(team * Rows == Threads);
  const int own = thread_index() / team, member = thread_index() % team;
  AOTI_UNROLL_TIMES(1)
  for (i64 first = i64(block_index()) * Rows; first < rows; first += i64(block_count()) * Rows) {
    // Teams without a row do that of the last one again: all threads meet at the barriers.
    const i64 u = first + own < rows ? first + own : rows - 1;
    const Row row{x + u * Row::in, roots + Passes::roots, y + u * Row::out, scale};
    team_row<F, By, N, Passes, team>(member, RowMemory<T>{memory + own * size}, roots, row);
  }
}

} // namespace fourier

// Transforms of `rows` rows, Rows of a block at a time.
template <fourier::Form F, fourier::Way By, int N, class Passes, int Threads, int Rows, class T>
AOTI_INLINE void fourier_of_teams(i64 rows, const T *x, const T *roots, T *y, T scale) {
  using namespace fourier;
  AOTI_DYNAMIC_SHARED(memory);
  if ((u64(x) | u64(y)) % sizeof(Pair<T>) == 0)
    all_rows<F, By, N, Passes, Threads, Rows, true>(rows, x, roots, y, scale, (Pair<T> *)memory);
  else
    all_rows<F, By, N, Passes, Threads, Rows, false>(rows, x, roots, y, scale, (Pair<T> *)memory);
}

AOTI_NAMESPACE_END
