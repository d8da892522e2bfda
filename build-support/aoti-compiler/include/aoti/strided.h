// Loads of lanes that do not lie side by side in memory, and of those lanes alone for which a mask holds. Knows what
// instructions and shuffles there are for them; memory beyond the elements that are asked for is never read.
#pragma once

#include "memory.h"

AOTI_NAMESPACE_BEGIN

namespace detail {

#if !AOTI_GPU
#if AOTI_AVX512
typedef float v8f __attribute__((vector_size(32)));
typedef float v16f __attribute__((vector_size(64)));
typedef double v8d __attribute__((vector_size(64)));
AOTI_INLINE u16 mask_bits(Mask<16> mask) { return u16(__builtin_ia32_cvtd2mask512((v16i)mask.m.v)); }
AOTI_INLINE u8 mask_bits(Mask<8> mask) { return u8(__builtin_ia32_cvtd2mask256((v8i)mask.m.v)); }
#endif
// Whether an instruction reads elements of this type at any indices, those of W lanes in whole registers.
template <class T, int W> constexpr bool has_gather = AOTI_AVX512 && W >= 8 && (sizeof(T) == 4 || sizeof(T) == 8);

// Lane i of p where `live` holds, zero elsewhere. Only those elements are read.
template <int W, class T> AOTI_INLINE Vec<T, W> load_live(const T *p, Mask<W> live) {
  constexpr int bytes = W * int(sizeof(T));
  constexpr int size = sizeof(T);
  (void)size, (void)bytes;
  if constexpr (W == 1)
    return lane(live, 0) ? Vec<T, W>{*p} : Vec<T, W>{T(0)};
  else if constexpr (shape_of<T, W> == kPair)
    return {load_live(p, Mask<W / 2>{lower(live.m)}), load_live(p + W / 2, Mask<W / 2>{upper(live.m)})};
#if AOTI_AVX512
  else if constexpr (size == 4 && bytes == 64)
    return {(typename Vec<T, W>::Register)__builtin_ia32_loaddqusi512_mask((const int *)p, v16i{}, mask_bits(live))};
  else if constexpr (size == 1 && bytes == 16)
    return {(typename Vec<T, W>::Register)__builtin_ia32_loaddquqi128_mask((AOTI_NARROW(const v16c, const char) *)p, v16c{}, mask_bits(live))};
  else if constexpr (size == 2 && bytes == 32)
    return {(typename Vec<T, W>::Register)__builtin_ia32_loaddquhi256_mask((AOTI_NARROW(const v16s, const short) *)p, v16s{}, mask_bits(live))};
#endif
#if AOTI_AVX2
  else if constexpr (size == 4 && bytes == 32)
    return {(typename Vec<T, W>::Register)__builtin_ia32_maskloadd256((const v8i *)p, (v8i)live.m.v)};
#endif
  else {
    T buffer[W] = {};
    i32 is_live[W];
    store_raw(Full<W>{}, is_live, live.m);
    for (int i = 0; i < W; ++i)
      if (is_live[i]) buffer[i] = p[i];
    return load_raw(Full<W>{}, buffer);
  }
}

// Lanes [first, last) of p, the others zero, of registers of up to 16 bytes. Only those elements are read.
template <int W, class T> AOTI_INLINE Vec<T, W> load_window(const T *p, i32 first, i32 last) {
  const SixteenBytes own = load_bytes((const char *)(p + first), max_i64(last - first, 0) * int(sizeof(T)));
  const int shift = first * 8 * int(sizeof(T)), rest = shift % 64;
  const u64 carried = rest > 0 ? own.low >> (64 - rest) : 0;
  const Pair moved = shift >= 64 ? Pair{0, own.low << rest} : Pair{own.low << rest, own.high << rest | carried};
  Vec<T, W> all;
  __builtin_memcpy(&all.v, &moved, sizeof all.v);
  return all;
}

// Lane i of p + index[i] where `live` holds, zero elsewhere. Only those elements are read.
template <int W, class T, class I> AOTI_INLINE Vec<T, W> gather_live(const T *p, Vec<I, W> index, Mask<W> live) {
#if AOTI_AVX512
  if constexpr (has_gather<T, W> && sizeof(T) == 4 && W == 16 && is_same<I, i32>)
    return {(typename Vec<T, W>::Register)__builtin_ia32_gathersiv16sf(v16f{}, p, (v16i)index.v, mask_bits(live), 4)};
  else if constexpr (has_gather<T, W> && W > 8)
    return join(gather_live(p, lower(index), Mask<W / 2>{lower(live.m)}),
                gather_live(p, upper(index), Mask<W / 2>{upper(live.m)}));
  else if constexpr (has_gather<T, W>) {
    const v8l at = (v8l)convert<i64>(index).v;
    if constexpr (sizeof(T) == 4)
      return {(typename Vec<T, W>::Register)__builtin_ia32_gatherdiv16sf(v8f{}, p, at, mask_bits(live), 4)};
    else
      return {(typename Vec<T, W>::Register)__builtin_ia32_gatherdiv8df(v8d{}, p, at, mask_bits(live), 8)};
  } else
#endif
  {
    T buffer[W] = {};
    i32 is_live[W];
    I at[W];
    store_raw(Full<W>{}, is_live, live.m);
    store_raw(Full<W>{}, at, index);
    for (int i = 0; i < W; ++i)
      if (is_live[i]) buffer[i] = p[at[i]];
    return load_raw(Full<W>{}, buffer);
  }
}

// The registers that hold lanes i of p + Step * i, whole ones side by side. The last one ends with the last element that is
// asked for: the one behind it may not exist.
template <i64 Step, int W> struct Spread {
  static constexpr int span = (W - 1) * int(Step) + 1;
  static constexpr int registers = (span + W - 1) / W;
  static constexpr int start(int number) { return number == registers - 1 ? span - W : number * W; }
  static constexpr int of_lane(int lane) { return lane * int(Step) / W; }
  static constexpr int place(int lane) { return lane * int(Step) - start(of_lane(lane)); }
};
// The lanes that are in registers First to Last - 1 of these, in their places; any others elsewhere. Two registers meet in
// a shuffle, and their results in blends, which are cheaper and wait for each other less than a chain of shuffles.
template <i64 Step, int First, int Last, int W, class T, int... I>
AOTI_INLINE auto load_spread(const T *p, Indices<I...>) {
  using S = Spread<Step, W>;
  const auto at = [&](int number) AOTI_LAMBDA { return load_raw(Full<W>{}, p + S::start(number)).v; };
  if constexpr (Last - First <= 2)
    return shuffled<(S::of_lane(I) < First || S::of_lane(I) >= Last ? I
                     : S::of_lane(I) == First                       ? S::place(I)
                                                                    : W + S::place(I))...>(at(First), at(Last - 1));
  else {
    constexpr int middle = First + (Last - First + 2) / 4 * 2;
    const auto low = load_spread<Step, First, middle, W>(p, indices<W>{});
    const auto high = load_spread<Step, middle, Last, W>(p, indices<W>{});
    return shuffled<(S::of_lane(I) < middle ? I : W + I)...>(low, high);
  }
}
// Lane i of p + Step * i, by whole registers and shuffles.
template <i64 Step, int W, class T> AOTI_INLINE Vec<T, W> load_spread(const T *p) {
  if constexpr (shape_of<T, W> == kPair)
    return {load_spread<Step, W / 2>(p), load_spread<Step, W / 2>(p + W / 2 * Step)};
  else
    return {load_spread<Step, 0, Spread<Step, W>::registers, W>(p, indices<W>{})};
}

// Whether that is faster than a load for each lane, which it is with two registers, and with up to half as many as they have lanes.
template <i64 Step, class T, int W> constexpr bool is_spread_little() {
  if constexpr (shape_of<T, W> == kPair)
    return is_spread_little<Step, T, W / 2>();
  else
    return W > 1 && (Step == 2 || (Step > 2 && Step <= W / 2));
}

// Lane i of p + i * stride.
template <int W, class T> AOTI_INLINE Vec<T, W> load_strided_raw(Full<W> lanes, const T *p, i64 stride) {
  if constexpr (has_gather<T, W>)
    return gather_live(p, iota(lanes, 0, stride), active(lanes));
  else
    return fill<W, T>(lanes, [&](int i) { return p[i * stride]; });
}
// The lanes of one register in the other order.
template <class T, int W, int... I> AOTI_INLINE Vec<T, W> reversed(Vec<T, W> a, Indices<I...>) {
  return {shuffled<(W - 1 - I)...>(a.v, a.v)};
}
// Lane i of p - i.
template <int W, class T> AOTI_INLINE Vec<T, W> load_reversed(const T *p) {
  if constexpr (shape_of<T, W> == kPair)
    return {load_reversed<W / 2>(p), load_reversed<W / 2>(p - W / 2)};
  else
    return reversed(load_raw(Full<W>{}, p - (W - 1)), indices<W>{});
}
template <int W, class T> AOTI_INLINE Vec<T, W> load_strided_raw(Tail<W> lanes, const T *p, i64 stride) {
  if constexpr (has_gather<T, W>)
    return gather_live(p, iota(lanes, 0, stride), active(lanes));
  else {
    // The first element stands for those of lanes that are not in use.
    if (lanes.n <= 0) return splat<W>(T(0));
    const auto all = fill<W, T>(Full<W>{}, [&](int i) { return p[i < lanes.n ? i * stride : 0]; });
    return select_tail(lanes, all, T(0));
  }
}
#endif

} // namespace detail

#if AOTI_GPU
// Lane i at p + i * stride.
template <class L, class T> AOTI_INLINE auto load_strided(L lanes, const T *p, i64 stride) {
  return detail::Element<T>::decode(
      detail::fill<L::width, detail::raw_of<T>>(lanes, [&](int i) { return detail::peek(p + i * stride); }));
}
template <i64 Step, class L, class T> AOTI_INLINE auto load_every(L lanes, const T *p) {
  return load_strided(lanes, p, Step);
}
// Lane i at p + index[i].
template <class L, class T, class I> AOTI_INLINE auto gather(L lanes, const T *p, Vec<I, L::width> index) {
  return detail::Element<T>::decode(
      detail::fill<L::width, detail::raw_of<T>>(lanes, [&](int i) { return detail::peek(p + lane(index, i)); }));
}
#else
// Lane i at p + i * stride.
template <class L, class T> AOTI_INLINE auto load_strided(L lanes, const T *p, i64 stride) {
  return detail::Element<T>::decode(detail::load_strided_raw(lanes, (const detail::raw_of<T> *)p, stride));
}
// The same with a stride that is known when the kernel is compiled.
template <i64 Step, class L, class T> AOTI_INLINE auto load_every(L lanes, const T *p) {
  constexpr int W = L::width;
  if constexpr (Step == 1)
    return load(lanes, p);
  else if constexpr (Step == -1 && W > 1 && is_same<L, Full<W>>)
    return detail::Element<T>::decode(detail::load_reversed<W>((const detail::raw_of<T> *)p));
  else if constexpr (detail::is_spread_little<Step, detail::raw_of<T>, W>() && is_same<L, Full<W>>)
    return detail::Element<T>::decode(detail::load_spread<Step, W>((const detail::raw_of<T> *)p));
  else if constexpr (Step > 1 && Step <= 16 && is_same<L, Full<W>>)
    // What is near takes an instruction that gathers twice as long as loads one by one; what is far from each other, in lines
    // of its own, it asks for sooner.
    return detail::Element<T>::decode(
        detail::fill<W, detail::raw_of<T>>(lanes, [&](int i) { return detail::peek(p + i * Step); }));
  else
    return load_strided(lanes, p, Step);
}
// Lane i at p + index[i].
template <class L, class T, class I> AOTI_INLINE auto gather(L lanes, const T *p, Vec<I, L::width> index) {
  using Raw = detail::raw_of<T>;
  constexpr int W = L::width;
  if constexpr (detail::has_gather<Raw, W>)
    return detail::Element<T>::decode(detail::gather_live((const Raw *)p, index, active(lanes)));
  else if constexpr (W > 1 && is_same<L, Tail<W>>) {
    // The element of the first lane stands for those of lanes that are not in use.
    if (lanes.n <= 0) return detail::Element<T>::decode(splat<W>(Raw(0)));
    const auto inside = select_tail(lanes, index, lane(index, 0));
    const auto all = detail::fill<W, Raw>(Full<W>{}, [&](int i) { return detail::peek(p + lane(inside, i)); });
    return detail::Element<T>::decode(select_tail(lanes, all, Raw(0)));
  } else
    return detail::Element<T>::decode(
        detail::fill<W, Raw>(lanes, [&](int i) { return detail::peek(p + lane(index, i)); }));
}
#endif

#if AOTI_GPU
// Pixels of `C` planes of channels that are `plane` elements apart, the channels of each side by side, from channel `phase` on,
// which is at p.
template <int C, class L, class T> AOTI_INLINE auto load_interleaved(L lanes, const T *p, i64 phase, i32 plane) {
  const int first = int(phase);
  return detail::Element<T>::decode(detail::fill<L::width, detail::raw_of<T>>(lanes, [&](int i) {
    return detail::peek(p + (first + i) / C + i64((first + i) % C - first) * plane);
  }));
}
#else
namespace detail {

// For a row of pixels of `C` channels from channel `phase` on: the pixel and the channel of each lane.
template <int C, int W> struct Interleaving {
  i32 pixel[C][W], channel[C][W];
  constexpr Interleaving() : pixel(), channel() {
    for (int phase = 0; phase < C; ++phase)
      for (int i = 0; i < W; ++i) pixel[phase][i] = (phase + i) / C, channel[phase][i] = (phase + i) % C;
  }
};
template <int C, int W> constexpr Interleaving<C, W> kInterleaving{};

#if AOTI_AVX512
// Lanes at `index` of a.
AOTI_INLINE Vec<f32, 16> permuted(Vec<f32, 16> a, Vec<i32, 16> index) {
#if __has_builtin(__builtin_ia32_permvarsf512)
  return {(Vec<f32, 16>::Register)__builtin_ia32_permvarsf512(a.v, (v16i)index.v)};
#else
  return {(Vec<f32, 16>::Register)__builtin_ia32_permvarsf512_mask(a.v, (v16i)index.v, v16f{}, u16(-1))};
#endif
}
#endif

} // namespace detail

// The same: registers of each plane whose lanes are put in their places, where there are instructions for that.
template <int C, class L, class T> AOTI_INLINE auto load_interleaved(L lanes, const T *p, i64 phase, i32 plane) {
  constexpr int W = L::width;
  const auto &places = detail::kInterleaving<C, W>;
  const auto pixel = detail::load_raw(Full<W>{}, places.pixel[phase]);
  const auto channel = detail::load_raw(Full<W>{}, places.channel[phase]);
#if AOTI_AVX512
  if constexpr (is_same<T, f32> && W == 16) {
    Vec<f32, W> all = splat<W>(0.0f);
    for (int c = 0; c < C; ++c) {
      // The lane that each pixel of the plane is for.
      const auto lane = detail::count_lanes<W>() * i32(C) + i32(c - phase);
      const auto is_live = (lane >= i32(0)) & (lane < i32(detail::used(lanes)));
      const auto own = detail::load_live(p + (c - phase) * plane, is_live);
      all = select(channel == i32(c), detail::permuted(own, pixel), all);
    }
    return all;
  } else
#endif
    return gather(lanes, p, pixel + (channel - i32(phase)) * plane);
}
#endif

AOTI_NAMESPACE_END
