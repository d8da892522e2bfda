// What an instruction of AMD's matrix units does, on a processor, by the threads of an emulated wavefront together: the layouts are
// those of fragments.h. For tests.
#pragma once

AOTI_NAMESPACE_BEGIN

namespace detail {

struct FragmentSums {
  f32 at[8];
  f32 &operator[](int e) { return at[e]; }
  f32 operator[](int e) const { return at[e]; }
};

// What lanes show each other behind one barrier: two sets in turn, as a lane may be at its next instruction while others still
// read those of the last.
struct FragmentOperands {
  char a[32], b[32];
};
inline FragmentOperands *fragment_operands() {
  static FragmentOperands all[2][emulated::kMostThreads];
  static unsigned char turn[emulated::kMostThreads];
  const int thread = thread_index();
  turn[thread] ^= 1;
  return all[turn[thread]] + thread / kWarp * kWarp;
}
inline f32 fragment_element(f16 x) { return to_f32(x); }
inline f32 fragment_element(bf16 x) { return to_f32(x); }
inline f32 fragment_element(f32 x) { return x; }

// An instruction of this layout, of which lanes have `Bytes` of each operand.
template <class T, int Bytes> FragmentSums multiply_as(const FragmentLayout &layout, const char *a, const char *b, FragmentSums c) {
  FragmentOperands *const all = fragment_operands();
  const int lane = thread_index() % kWarp, side = FragmentLayout::kSide;
  memcpy(all[lane].a, a, Bytes), memcpy(all[lane].b, b, Bytes);
  warp_barrier();
  const FragmentOperands &first = all[layout.group(lane) * side + lane % side];
  if (memcmp(first.a, a, Bytes) || memcmp(first.b, b, Bytes)) {
    fprintf(stderr, "emulated block %d: lane %d does not repeat the operands of another\n", block_index(), lane);
    abort();
  }
  const auto element = [](const char *of, int i) {
    T own;
    memcpy(&own, of + i * sizeof(T), sizeof own);
    return double(fragment_element(own));
  };
  for (int e = 0; e < layout.sums; ++e) {
    double sum = c[e];
    for (int group = 0; group < layout.groups; ++group)
      for (int i = 0; i < Bytes / int(sizeof(T)); ++i)
        sum += element(all[group * side + layout.row(lane, e)].a, i) * element(all[group * side + lane % side].b, i);
    c[e] = f32(sum);
  }
  return c;
}

} // namespace detail

AOTI_NAMESPACE_END
