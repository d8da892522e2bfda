// Sorting and running reductions of rows against the plainest code, bit for bit: rows and columns, every way that lengths and
// counts of results choose, ties, zeros of both signs, infinities and NaN.
#include "aoti/nth_element.h"
#include "aoti/scan.h"
#include "check.h"
#include <initializer_list>

using namespace aoti;

static int failures = 0;

// Few values, so that many are equal.
template <class T> static void draw(T &x) {
  const int v = check_random(-9, 9);
  check_set(x, v);
  if constexpr (is_float<T>) {
    if (v == 9) x = T(__builtin_nanf(""));
    if (v == 8) x = T(__builtin_inff());
    if (v == -9) x = -T(__builtin_inff());
    if (v == 0 && check_random(0, 1)) x = -x;
  }
}

// Of row u, whether the element at `place` has the rank in a stable order.
template <class T, bool Descending> static bool has_rank(const T *row, i64 length, i64 inner, i64 place, i64 rank) {
  const auto x = read(row + place * inner);
  for (i64 i = 0; i < length; ++i) {
    const auto other = read(row + i * inner);
    const bool less = Descending ? before(x, other) : before(other, x), more = Descending ? before(other, x) : before(x, other);
    rank -= less || (!more && i < place);
  }
  return rank == 0;
}

template <class T, bool Descending> static void sorts(i64 outer, i64 length, i64 inner, i64 kept) {
  Guarded<T> in(outer * length * inner), out(outer * kept * inner);
  Guarded<i64> index(outer * kept * inner);
  Guarded<char> scratch(2 * length * i64(sizeof(SortItem<T>)), true);
  for (i64 i = 0; i < in.n; ++i) draw(in.data[i]);
  AotiContext context{};
  Run run{};
  run.context = &context, run.scratch = scratch.data;
  sort_rows<T, Descending>(run, in.data, out.data, index.data, outer, length, inner, kept);
  for (i64 u = 0; u < outer * inner; ++u) {
    const T *row = in.data + u / inner * length * inner + u % inner;
    for (i64 k = 0; k < kept; ++k) {
      const i64 at = (u / inner * kept + k) * inner + u % inner, place = index.data[at];
      const bool is_it = has_rank<T, Descending>(row, length, inner, place, k);
      if (!is_it || memcmp(&out.data[at], row + place * inner, sizeof(T))) ++failures;
    }
  }
}

// One rank, and one of each row: some lead out of it.
template <class T, bool Partitioned> static void nth(i64 outer, i64 length, i64 inner) {
  const i64 rows = outer * inner;
  Guarded<T> in(rows * length), out(rows), same(rows);
  Guarded<i64> index(rows), same_index(rows), ranks(rows), order(length);
  Guarded<char> scratch(length * i64(sizeof(order_word<T>) + (Partitioned ? sizeof(i64) : 0)), true);
  for (i64 i = 0; i < in.n; ++i) draw(in.data[i]);
  for (i64 u = 0; u < rows; ++u) ranks.data[u] = check_random(-1, int(length));
  AotiContext context{};
  Run run{};
  run.context = &context, run.scratch = scratch.data;
  nth_elements<T, Partitioned>(run, in.data, (const i64 *)ranks.data, out.data, index.data, outer, length, inner);
  nth_elements<T, Partitioned>(run, in.data, ranks.data[0], same.data, same_index.data, outer, length, inner);
  if (index.data[0] != same_index.data[0]) ++failures;
  for (i64 u = 0; u < rows; ++u) {
    const T *row = in.data + u / inner * length * inner + u % inner;
    const i64 place = index.data[u], rank = rank_in(ranks.data[u], 0, length);
    bool is_it = has_rank<T, false>(row, length, inner, place, rank);
    if (Partitioned) {
      for (i64 i = 0; i < length; ++i) order.data[i] = i;
      partition_to([&](i64 i) { return order_key<false>(row + i * inner); }, order.data, length, rank);
      is_it = order.data[rank] == place;
    }
    if (!is_it || memcmp(&out.data[u], row + place * inner, sizeof(T))) ++failures;
  }
}

template <class T, class Op, class Extreme> static void scans(i64 outer, i64 length, i64 inner) {
  Guarded<T> in(outer * length * inner), sums(in.n), best(in.n);
  Guarded<i64> index(in.n);
  for (i64 i = 0; i < in.n; ++i) draw(in.data[i]);
  AotiContext context{};
  Run run{};
  run.context = &context;
  scan<Op>(run, in.data, sums.data, outer, length, inner);
  scan_extreme<Extreme>(run, in.data, best.data, index.data, outer, length, inner);
  for (i64 u = 0; u < outer * inner; ++u) {
    const i64 base = u / inner * length * inner + u % inner;
    computed<T> sum{}, high{};
    i64 at = 0;
    for (i64 i = 0; i < length; ++i) {
      const auto x = read(in.data + base + i * inner);
      const Vec<computed<T>, 1> own{x};
      sum = i == 0 ? x : Op::next(Vec<computed<T>, 1>{sum}, own).v;
      if (i == 0 || lane(Extreme::replaces(own, Vec<computed<T>, 1>{high}), 0)) high = x, at = i;
      T own_sum, own_high;
      write(&own_sum, sum), write(&own_high, high);
      const i64 k = base + i * inner;
      const auto has = read(sums.data + k);
      const bool same = memcmp(&own_sum, sums.data + k, sizeof(T)) == 0 || (is_nan(sum) && is_nan(has));
      if (!same || memcmp(&own_high, best.data + k, sizeof(T)) || index.data[k] != at) ++failures;
    }
  }
}

template <class T> static void all() {
  const i64 lengths[] = {1, 2, 7, 8, 9, 33, 256, 257, 700};
  for (i64 length : lengths)
    for (i64 inner : {1, 3, 17}) {
      // Few rows, and as many as there are lanes for.
      const i64 outer = check_random(1, length < 100 && inner == 1 ? 40 : 6);
      for (i64 kept : {i64(0), i64(1), i64(4), i64(16), i64(17), length / 5, length}) {
        kept = min_i64(kept, length);
        sorts<T, false>(outer, length, inner, kept);
        sorts<T, true>(outer, length, inner, kept);
      }
      nth<T, false>(outer, length, inner);
      nth<T, true>(outer, length, inner);
      scans<T, ScanSum, ScanMax>(outer, length, inner);
      scans<T, ScanProd, ScanMin>(outer, length, inner);
    }
}

int main() {
  all<f32>();
  all<f64>();
  all<bf16>();
  all<i8>();
  all<i64>();
  printf("%d failures\n", failures);
  return failures != 0;
}
