// Who computes a matrix: one thread, or on GPUs a block of threads together. Routines are written once, for both: every thread of a
// team takes the same way through a routine, and what it does in each(), columns() and once() is shared out.
#pragma once

#include "base.h"
#if AOTI_GPU
#include "gpu/run.h"
#endif

AOTI_NAMESPACE_BEGIN
namespace linalg {

// Threads that share a matrix at most.
constexpr int kMatrixThreads = 512;

// One thread.
struct Alone {
  static constexpr bool kIsAlone = true;

  // body(i) for every i below `count`; what one does, no other reads.
  template <class Body> static AOTI_INLINE void each(i64 count, const Body &body) {
    for (i64 i = 0; i < count; ++i) body(i);
  }
  // body(r, c) likewise.
  template <class Body> static AOTI_INLINE void each(i64 rows, i64 columns, const Body &body) {
    for (i64 r = 0; r < rows; ++r)
      for (i64 c = 0; c < columns; ++c) body(r, c);
  }
  // body(begin, end) for ranges that are [first, end) together: as many as are worth it.
  template <class Body> static AOTI_INLINE void columns(i64 first, i64 end, const Body &body) { body(first, end); }
  // What only one thread may do.
  template <class Body> static AOTI_INLINE void once(const Body &body) { body(); }
  // The sum of part(i) over every i below `count`.
  template <class T, class Part> static AOTI_INLINE T sum(i64 count, const Part &part) {
    T sum = {};
    for (i64 i = 0; i < count; ++i) sum = sum + part(i);
    return sum;
  }
  // The first i in [first, end) whose of(i) is the largest; NaN is larger than nothing, and nothing is larger than a NaN at `first`.
  template <class T, class Of> static AOTI_INLINE i64 largest(i64 first, i64 end, const Of &of) {
    i64 found = first;
    T most = of(first);
    for (i64 i = first + 1; i < end; ++i) {
      const T own = of(i);
      if (own > most) found = i, most = own;
    }
    return found;
  }
};

#if AOTI_GPU

// The threads of a block, a power of two. Sums are added in an order that their count and that of the threads give.
struct Block {
  static constexpr bool kIsAlone = false;

  template <class Body> static AOTI_INLINE void each(i64 count, const Body &body) {
    barrier();
    for (i64 i = thread_index(); i < count; i += block_size()) body(i);
    barrier();
  }
  template <class Body> static AOTI_INLINE void each(i64 rows, i64 columns, const Body &body) {
    barrier();
    // Neighbouring threads have neighbouring columns; those of a narrow matrix have several rows.
    const i64 across = columns < block_size() ? columns : block_size(), down = across > 0 ? block_size() / across : 0;
    const i64 own = across > 0 ? thread_index() / across : 0;
    if (own < down)
      for (i64 r = own; r < rows; r += down)
        for (i64 c = thread_index() % across; c < columns; c += across) body(r, c);
    barrier();
  }
  template <class Body> static AOTI_INLINE void columns(i64 first, i64 end, const Body &body) {
    barrier();
    for (i64 c = first + thread_index(); c < end; c += block_size()) body(c, c + 1);
    barrier();
  }
  template <class Body> static AOTI_INLINE void once(const Body &body) {
    barrier();
    if (thread_index() == 0) body();
    barrier();
  }
  template <class T, class Part> static AOTI_INLINE T sum(i64 count, const Part &part) {
    AOTI_SHARED T sums[kMatrixThreads];
    T own = {};
    for (i64 i = thread_index(); i < count; i += block_size()) own = own + part(i);
    join(sums, own, [](T &a, T b) { a = a + b; });
    return sums[0];
  }
  template <class T, class Of> static AOTI_INLINE i64 largest(i64 first, i64 end, const Of &of) {
    struct Found {
      T value;
      i64 at;
    };
    AOTI_SHARED Found all[kMatrixThreads];
    Found own = {T(0), end};
    for (i64 i = first + thread_index(); i < end; i += block_size()) {
      const T value = of(i);
      if (value == value && (own.at == end || value > own.value)) own = {value, i};
    }
    join(all, own, [end](Found &a, Found b) {
      if (b.at != end && (a.at == end || b.value > a.value || (b.value == a.value && b.at < a.at))) a = b;
    });
    const T begin = of(first);
    return begin == begin ? all[0].at : first;
  }

private:
  // What the threads have, joined in all[0]. Behind it the memory may be used again.
  template <class U, class Join> static AOTI_INLINE void join(U *all, U own, const Join &join) {
    barrier();
    all[thread_index()] = own;
    barrier();
    for (int half = block_size() / 2; half > 0; half /= 2) {
      if (thread_index() < half) join(all[thread_index()], all[thread_index() + half]);
      barrier();
    }
  }
};

#endif

} // namespace linalg
AOTI_NAMESPACE_END
