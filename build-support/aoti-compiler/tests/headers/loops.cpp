// Checks vector loops whose number of steps is known: they meet every step once, in order, with the lanes and in the slots that loops
// have whose number is not, and nothing is compiled for lanes that no step has.
#include "aoti/nest.h"

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

template <i64... Counts> void check_all() { (check<Counts>(), ...); }

int main() {
  check_all<0, 1, 2, 3, 4, 5, 7, 8, 9, 15, 16, 17, 23, 31, 32, 33, 63, 64, 65, 100, 127, 128, 129, 255, 256, 300>();
  return check_end();
}
