// Checks rows that are turned in blocks, and vector loops whose number of steps is known: they meet every step once, in order, with the lanes and in the slots that loops
// have whose number is not, and nothing is compiled for lanes that no step has.
#include "aoti/nest.h"
#include "aoti/turned.h"

#include "check.h"

using namespace aoti;

constexpr int W = AOTI_LANES;

// What a body was given.
struct Calls {
  i64 at[400];
  int lanes[400], slot[400], count = 0;
  bool operator==(const Calls &other) const {
    bool same = count == other.count;
    for (int i = 0; same && i < count; ++i)
      same = at[i] == other.at[i] && lanes[i] == other.lanes[i] && slot[i] == other.slot[i];
    return same;
  }
};

template <int Lanes> int used(Full<Lanes>) { return Lanes; }
template <int Lanes> int used(Tail<Lanes> tail) { return tail.n; }

template <i64 Count> void check() {
  auto into = [](Calls &calls) {
    return [&calls](auto lanes, i64 i, auto slot) {
      calls.at[calls.count] = i, calls.lanes[calls.count] = used(lanes), calls.slot[calls.count++] = slot.index;
    };
  };
  Calls plain, known, in_slots, known_in_slots, in_chunks;
  over<W>(0, Count, into(plain));
  over<W, Count>(0, Count, into(known));
  over_slots<W>(0, Count, into(in_slots));
  over_slots<W, Count>(into(known_in_slots));
  constexpr i64 chunk = 2 * W;
  for (i64 begin = 0; begin < Count; begin += chunk)
    over<W, Count>(begin, min_i64(begin + chunk, Count), into(in_chunks));
  ++check_cases;
  if (!(plain == known) || !(plain == in_chunks)) CHECK_FAIL("%lld steps differ", (long long)Count);
  if (!(in_slots == known_in_slots)) CHECK_FAIL("%lld steps in slots differ", (long long)Count);

  // A body that cannot be compiled for other lanes.
  over<W, Count>(0, Count, [](auto lanes, i64, auto) {
    constexpr bool is_full = is_same<decltype(lanes), Full<W>>;
    static_assert(is_full ? Count >= W : Count % W != 0, "no step has these lanes");
  });
  over_slots<W, Count>([](auto lanes, i64, auto slot) {
    constexpr bool is_full = is_same<decltype(lanes), Full<W>>;
    static_assert(is_full ? Count >= W : Count % W != 0, "no step has these lanes");
    static_assert(slot.index == 0 || Count >= 4 * W, "no step is in this slot");
  });
}

// Rows [begin, end) of some are read from between planes of elements, and written there.
template <i64 Count> void check_turned(i64 rows, i64 begin, i64 end) {
  f32 *const from = new f32[Count * rows], *const to = new f32[Count * rows];
  for (i64 i = 0; i < Count * rows; ++i) from[i] = f32(i), to[i] = -1;
  {
    TurnedLoads<Count> loads;
    TurnedStores<Count> stores;
    for (i64 row = begin; row < end; ++row) {
      const f32 *own = loads.row(from + row, rows, end - row);
      f32 *other = stores.row(to + row, rows, end - row);
      for (i64 i = 0; i < Count; ++i) other[i] = own[i];
    }
  }
  ++check_cases;
  for (i64 i = 0; i < Count * rows; ++i) {
    const bool is_written = i % rows >= begin && i % rows < end;
    if (to[i] != (is_written ? f32(i) : -1)) CHECK_FAIL("row %lld of %lld is wrong", (long long)(i % rows), (long long)rows);
  }
  delete[] from, delete[] to;
}
template <i64 Count> void check_turned() {
  check_turned<Count>(1, 0, 1), check_turned<Count>(16, 0, 16), check_turned<Count>(45, 0, 45), check_turned<Count>(40, 7, 30);
}

template <i64... Counts> void check_all() { (check<Counts>(), ...); }

int main() {
  check_all<0, 1, 2, 3, 4, 5, 7, 8, 9, 15, 16, 17, 23, 31, 32, 33, 63, 64, 65, 100, 127, 128, 129, 255, 256, 300>();
  check_turned<1>(), check_turned<3>(), check_turned<4>(), check_turned<24>(), check_turned<33>(), check_turned<254>();
  return check_end();
}
