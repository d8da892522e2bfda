// Operations along one axis of [outer, length, inner] tensors: running reductions, sorting, binary search.
// Elements are handled one at a time; NaN counts as the largest number.
#pragma once

#include "math.h"
#include "vec.h"
#if AOTI_GPU
#include "gpu/run.h"
#else
#include "run.h"
#endif

AOTI_NAMESPACE_BEGIN

// The type that elements of T are compared and summed in.
template <class T> using computed = conditional<is_narrow<T>, f32, T>;

template <class T> AOTI_INLINE computed<T> read(const T *p) {
  if constexpr (is_narrow<T>)
    return to_f32(*p);
  else
    return *p;
}
template <class T> AOTI_INLINE void write(T *p, computed<T> x) {
  if constexpr (is_narrow<T>)
    from_f32(*p, x);
  else
    *p = x;
}
template <class T> AOTI_INLINE bool is_nan(T x) { return x != x; }
// Whether a comes before b in ascending order, NaN last.
template <class T> AOTI_INLINE bool before(T a, T b) { return a < b || (is_nan(b) && !is_nan(a)); }

struct ScanSum {
  template <class T> static AOTI_INLINE T first(T x) { return x; }
  template <class T> static AOTI_INLINE T next(T a, T x) {
    if constexpr (is_float<T>)
      return a + x;
    else
      return T(u64(a) + u64(x));
  }
};
struct ScanProd {
  template <class T> static AOTI_INLINE T first(T x) { return x; }
  template <class T> static AOTI_INLINE T next(T a, T x) {
    if constexpr (is_float<T>)
      return a * x;
    else
      return T(u64(a) * u64(x));
  }
};
struct ScanLogSumExp {
  template <class T> static AOTI_INLINE T first(T x) { return x; }
  template <class T> static AOTI_INLINE T next(T a, T x) {
    T high = a > x ? a : x, low = a > x ? x : a;
    if (is_nan(a) || is_nan(x)) return a + x;
    // Equal infinities would give infinity minus infinity.
    if (high == low && high - high != T(0)) return high;
    return high + log1p(exp(Vec<T, 1>{low - high})).v;
  }
};

template <class Op, class T>
AOTI_INLINE void scan(const Run &run, const T *in, T *out, i64 outer, i64 length, i64 inner) {
  parallel(run, outer * inner, grain(run, 4096, length), [&](i64 begin, i64 end, i64) {
    for (i64 u = begin; u < end; ++u) {
      i64 base = u / inner * length * inner + u % inner;
      if (length == 0) continue;
      computed<T> sum = Op::first(read(in + base));
      write(out + base, sum);
      for (i64 i = 1; i < length; ++i) {
        sum = Op::next(sum, read(in + base + i * inner));
        write(out + base + i * inner, sum);
      }
    }
  });
}

// A later equal element takes over, and NaN stays.
struct ScanMax {
  template <class T> static AOTI_INLINE bool replaces(T x, T best) { return is_nan(x) || (!is_nan(best) && x >= best); }
};
struct ScanMin {
  template <class T> static AOTI_INLINE bool replaces(T x, T best) { return is_nan(x) || (!is_nan(best) && x <= best); }
};

template <class Op, class T>
AOTI_INLINE void scan_extreme(const Run &run, const T *in, T *out, i64 *index, i64 outer, i64 length, i64 inner) {
  parallel(run, outer * inner, grain(run, 4096, length), [&](i64 begin, i64 end, i64) {
    for (i64 u = begin; u < end; ++u) {
      i64 base = u / inner * length * inner + u % inner;
      computed<T> best{};
      i64 at = 0;
      for (i64 i = 0; i < length; ++i) {
        computed<T> x = read(in + base + i * inner);
        if (i == 0 || Op::replaces(x, best)) best = x, at = i;
        write(out + base + i * inner, best);
        index[base + i * inner] = at;
      }
    }
  });
}

#if !AOTI_GPU
// Stable bottom-up merge sort of indices.
template <class T, bool Descending>
AOTI_INLINE void sort_rows(const Run &run, const T *in, T *out, i64 *index, i64 outer, i64 length, i64 inner) {
  i64 worker_bytes = (2 * length * 8 + 63) / 64 * 64;
  parallel(run, outer * inner, grain(run, 1024, length), [&](i64 begin, i64 end, i64 worker) {
    i64 *from = (i64 *)(run.scratch + worker * worker_bytes), *to = from + length;
    for (i64 u = begin; u < end; ++u) {
      i64 base = u / inner * length * inner + u % inner;
      auto key = [&](i64 i) { return read(in + base + i * inner); };
      auto goes_first = [&](i64 a, i64 b) { return Descending ? before(key(b), key(a)) : before(key(a), key(b)); };
      for (i64 i = 0; i < length; ++i) from[i] = i;
      for (i64 width = 1; width < length; width *= 2) {
        for (i64 low = 0; low < length; low += 2 * width) {
          i64 middle = low + width < length ? low + width : length;
          i64 high = low + 2 * width < length ? low + 2 * width : length;
          i64 a = low, b = middle;
          for (i64 k = low; k < high; ++k)
            to[k] = a < middle && (b >= high || !goes_first(from[b], from[a])) ? from[a++] : from[b++];
        }
        i64 *swap = from;
        from = to, to = swap;
      }
      for (i64 i = 0; i < length; ++i) {
        index[base + i * inner] = from[i];
        out[base + i * inner] = in[base + from[i] * inner];
      }
    }
  });
}
#endif

// For each of `count` values of a row, where it belongs among the `length` sorted elements of the same row.
template <class T, bool Right>
AOTI_INLINE void search_sorted(const Run &run, const T *sorted, const T *values, i64 *out, i64 rows, i64 length,
                               i64 count) {
  parallel(run, rows * count, grain(run, 512, 1), [&](i64 begin, i64 end, i64) {
    for (i64 u = begin; u < end; ++u) {
      const T *row = sorted + u / count * length;
      computed<T> x = read(values + u);
      i64 low = 0, high = length;
      while (low < high) {
        i64 middle = low + (high - low) / 2;
        // Plain comparisons, as PyTorch's search has them: it goes right of NaN, whatever is looked for.
        computed<T> other = read(row + middle);
        bool goes_right = Right ? !(other > x) : !(other >= x);
        if (goes_right)
          low = middle + 1;
        else
          high = middle;
      }
      out[u] = low;
    }
  });
}

AOTI_NAMESPACE_END
