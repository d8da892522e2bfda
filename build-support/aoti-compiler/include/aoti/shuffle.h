// Shuffles of registers: lanes of one or two registers, by numbers that are known when the kernel is compiled. Compilers
// have different builtins for it; which one there is stays in this file. Works on plain registers; knows nothing of Vec.
#pragma once

#include "base.h"

#if !AOTI_GPU
AOTI_NAMESPACE_BEGIN

// Lanes I... of a, and of b, whose lanes are counted from the end of a. As many come back as are asked for.
#if __has_builtin(__builtin_shufflevector)
template <int... I, class R> AOTI_INLINE auto shuffled(R a, R b) { return __builtin_shufflevector(a, b, I...); }
#else
// GCC before 12: `__builtin_shuffle` gives as many lanes as a register has, so others come from a wider register or are the
// first of one.
template <class T, int N> struct Lanes {
  typedef T type __attribute__((vector_size(N * sizeof(T))));
};
template <class T> struct Plain {
  using type = T;
};
template <class T> struct Plain<T &> {
  using type = T;
};
template <int... I, class R> AOTI_INLINE auto shuffled(R a, R b) {
  using T = typename Plain<decltype(a[0])>::type;
  constexpr int given = int(sizeof(R) / sizeof(T)), asked = int(sizeof...(I));
  using Asked = typename Lanes<T, asked>::type;
  using Index = signed_of<T>;
  if constexpr (asked == given) {
    return __builtin_shuffle(a, b, typename Lanes<Index, given>::type{Index(I)...});
  } else if constexpr (asked < given) {
    const R all = __builtin_shuffle(a, b, typename Lanes<Index, given>::type{Index(I)...});
    Asked first;
    __builtin_memcpy(&first, &all, sizeof first);
    return first;
  } else {
    static_assert(asked == 2 * given, "both registers side by side have all lanes");
    const R both[2] = {a, b};
    Asked all;
    __builtin_memcpy(&all, both, sizeof all);
    return __builtin_shuffle(all, typename Lanes<Index, asked>::type{Index(I)...});
  }
}
#endif

AOTI_NAMESPACE_END
#endif
