// Operands of contractions, as the threads of a block read them: element (outer, depth), where the outer axis is that of the
// rows of a left operand and of the columns of a right one. Views, borders and conversions happen while a piece is read.
//
// An operand says in which order neighbouring threads read it, so that they read neighbouring memory, and whether aligned pieces
// of it are contiguous memory, which is copied without waiting (`kCopied`). What a thread needs to know of an outer position it
// computes once (`Position`); what all threads need to know of a depth, they look up in a table in shared memory that a few of them fill (`Entry`).
#pragma once

#include "conv.h"
#include "simt.h"

AOTI_NAMESPACE_BEGIN

template <class U, class T> AOTI_INLINE U widen(T x) {
  if constexpr (is_narrow<T>)
    return U(to_f32(x));
  else
    return U(x);
}

enum class Order {
  kDepth, // neighbours along the depth, where a thread reads several elements
  kOuter, // neighbours along the outer axis, where a thread reads several elements
  kLane   // neighbours along the outer axis, where a thread has one position of its own and reads along the depth
};

// N elements that one instruction reads, where they are aligned.
template <class T, int N> struct Piece {
  T at[N];
};

// What is looked up of the depths of a few pieces, in shared memory; nothing for most operands.
template <class Entry, int Pieces, int Step, bool Empty = __is_empty(Entry)> struct Lookup {
  Entry entries[Pieces][Step];
  template <class Source, class I> AOTI_INLINE void fill(const Source &source, int piece, I depth0, I depths) {
    AOTI_UNROLL_TIMES(1)
    for (int i = thread_index(); i < Step; i += block_size()) entries[piece % Pieces][i] = source.entry(I(depth0 + i), depths);
  }
  AOTI_INLINE const Entry *at(int piece, int depth) const { return &entries[piece % Pieces][depth]; }
};
template <class Entry, int Pieces, int Step> struct Lookup<Entry, Pieces, Step, true> {
  template <class Source, class I> AOTI_INLINE void fill(const Source &, int, I, I) {}
  AOTI_INLINE const Entry *at(int, int) const { return nullptr; }
};

namespace detail {
template <class T, int N> AOTI_INLINE Piece<T, N> read_whole(const T *p) {
  constexpr int step = 16 / int(sizeof(T)) < N ? 16 / int(sizeof(T)) : N;
  Piece<T, N> piece;
  AOTI_UNROLL_TIMES(8)
  for (int i = 0; i < N; i += step) {
    Chunk<T, step> chunk = *(const Chunk<T, step> *)(p + i);
    __builtin_memcpy(piece.at + i, &chunk, sizeof chunk);
  }
  return piece;
}
} // namespace detail

// A tensor's memory, which begins at a multiple of 16 bytes: what follows of it is known when the kernel is compiled.
template <class T> AOTI_INLINE const T *whole(const T *p) { return aligned<16>(p); }

// Where neighbouring elements begin that lie at a multiple of their number, of those that an epilogue gets at a time.
template <class L, class T> AOTI_INLINE T *whole_lanes(L, T *p) {
  constexpr int bytes = L::width * int(sizeof(T));
  if constexpr (L::width == 1)
    return p;
  else
    return aligned<(bytes < 16 ? bytes : 16)>(p);
}

// A matrix: element (outer, depth) is at pointer[outer * outer_stride + depth * depth_stride].
template <class T, class I, bool ByDepth> struct Strided {
  using Element = T;
  static constexpr Order order = ByDepth ? Order::kDepth : Order::kOuter;
  static constexpr bool kCopied = true;
  const T *pointer;
  I outer_stride, depth_stride;

  AOTI_INLINE I step() const { return ByDepth ? depth_stride : outer_stride; }
  AOTI_INLINE const T *element(I outer, I depth) const { return pointer + (outer * outer_stride + depth * depth_stride); }
  // Whether pieces of N that start at multiples of N are contiguous and aligned.
  template <int N> AOTI_INLINE bool is_aligned() const {
    constexpr uintptr_t bytes = N * sizeof(T) < 16 ? N * sizeof(T) : 16;
    return step() == 1 && (ByDepth ? outer_stride : depth_stride) % N == 0 && uintptr_t(pointer) % bytes == 0;
  }
  struct Entry {};
  AOTI_INLINE Entry entry(I, I) const { return {}; }
  struct Position {
    I outer;
  };
  AOTI_INLINE Position position(I outer, I) const { return {outer}; }
  // One element that is inside.
  AOTI_INLINE T one(const Position &from, I depth) const { return *element(from.outer, depth); }
  // N elements from (outer, depth) on, along the depth or the outer axis; zero outside.
  template <int N, bool Aligned>
  AOTI_INLINE Piece<T, N> read(Position, const Entry *, I outer, I outers, I depth, I depths) const {
    const T *p = element(outer, depth);
    const I left = ByDepth ? (outer < outers ? depths - depth : I(0)) : (depth < depths ? outers - outer : I(0));
    if constexpr (Aligned)
      if (left >= N) return detail::read_whole<T, N>(p);
    Piece<T, N> piece;
    const I stride = step();
    AOTI_UNROLL_TIMES(8)
    for (int i = 0; i < N; ++i) piece.at[i] = i < left ? p[i * stride] : T{};
    return piece;
  }
};

// The pixels that a convolution adds up: outer positions are output pixels of all images, the depth runs over the channels
// of a group and the taps of each.
template <class T, class I, bool Transposed> struct Pixels {
  using Element = T;
  static constexpr Order order = Order::kLane;
  static constexpr bool kCopied = false;
  const T *pointer;
  ConvSizes<I> sizes;
  I group;

  template <int N> AOTI_INLINE bool is_aligned() const { return true; }
  // What a depth adds to the first tap of the first channel: elements, and steps along each axis; `is_inside`: it is one.
  struct Entry {
    I offset;
    i32 steps[3];
    i32 is_inside;
  };
  AOTI_INLINE Entry entry(I depth, I depths) const {
    const I taps = sizes.taps(), tap = depth % taps;
    const I k[3] = {tap / sizes.kernel[2] / sizes.kernel[1], tap / sizes.kernel[2] % sizes.kernel[1], tap % sizes.kernel[2]};
    Entry entry;
    entry.offset = depth / taps * (sizes.in[0] * sizes.in[1] * sizes.in[2]);
    I step = 0;
    AOTI_UNROLL_TIMES(3)
    for (int d = 0; d < 3; ++d) {
      entry.steps[d] = i32(k[d] * sizes.dilation[d]);
      step = step * sizes.in[d] + entry.steps[d];
    }
    if constexpr (!Transposed) entry.offset += step;
    entry.is_inside = depth < depths;
    return entry;
  }
  // An output pixel: where its first tap lies along each axis, and in memory, which may be outside.
  struct Position {
    i64 first;
    i32 start[3];
    bool is_inside;
  };
  AOTI_INLINE Position position(I outer, I outers) const {
    const I plane = sizes.out[0] * sizes.out[1] * sizes.out[2], image = outer / plane, pixel = outer % plane;
    const I o[3] = {pixel / sizes.out[2] / sizes.out[1], pixel / sizes.out[2] % sizes.out[1], pixel % sizes.out[2]};
    Position at;
    const I channels = sizes.in_channels / sizes.groups;
    i64 first = i64(image) * sizes.in_channels + group * channels;
    AOTI_UNROLL_TIMES(3)
    for (int d = 0; d < 3; ++d) {
      at.start[d] = i32(Transposed ? o[d] + sizes.padding[d] : o[d] * sizes.stride[d] - sizes.padding[d]);
      first = first * sizes.in[d] + (Transposed ? 0 : at.start[d]);
    }
    at.first = first;
    at.is_inside = outer < outers;
    return at;
  }
  AOTI_INLINE T look_up(const Position &from, const Entry &entry) const {
    bool inside = from.is_inside && entry.is_inside;
    i64 offset = from.first + entry.offset;
    if constexpr (Transposed) {
      I step = 0;
      AOTI_UNROLL_TIMES(3)
      for (int d = 0; d < 3; ++d) {
        const i32 reach = from.start[d] - entry.steps[d], stride = i32(sizes.stride[d]), at = reach / stride;
        inside = inside && reach >= 0 && at * stride == reach && at < sizes.in[d];
        step = step * sizes.in[d] + at;
      }
      offset += step;
    } else {
      AOTI_UNROLL_TIMES(3)
      for (int d = 0; d < 3; ++d)
        // One tap and no padding: every pixel is inside.
        if (sizes.kernel[d] != 1 || sizes.padding[d] != 0)
          inside = inside && u32(from.start[d] + entry.steps[d]) < u32(sizes.in[d]);
    }
    return inside ? pointer[offset] : T{};
  }
  AOTI_INLINE T one(const Position &from, I depth) const { return look_up(from, entry(depth, I(depth + 1))); }
  template <int N, bool>
  AOTI_INLINE Piece<T, N> read(const Position &from, const Entry *entries, I, I, I, I) const {
    Piece<T, N> piece;
    AOTI_UNROLL_TIMES(8)
    for (int i = 0; i < N; ++i) piece.at[i] = look_up(from, entries[i]);
    return piece;
  }
};

// The pixels that a convolution adds up where the channels of each lie side by side, [image][pixel][channel]: outer positions
// are output pixels of all images, the depth runs over the taps and the channels of a group in each.
template <class T, class I> struct WidePixels {
  using Element = T;
  static constexpr Order order = Order::kDepth;
  static constexpr bool kCopied = true;
  const T *pointer;
  ConvSizes<I> sizes;
  I group;

  AOTI_INLINE I channels() const { return sizes.in_channels / sizes.groups; }
  // Whether pieces of N that start at multiples of N are channels of one tap, and aligned.
  template <int N> AOTI_INLINE bool is_aligned() const {
    constexpr uintptr_t bytes = N * sizeof(T) < 16 ? N * sizeof(T) : 16;
    return channels() % N == 0 && sizes.in_channels % N == 0 && uintptr_t(pointer) % bytes == 0;
  }
  struct Entry {};
  AOTI_INLINE Entry entry(I, I) const { return {}; }
  // An output pixel: where its first tap lies along each axis, and in memory, which may be outside; which taps are inside, a
  // bit for each, where they are few.
  struct Position {
    const T *first;
    i32 start[3];
    u32 taps;
  };
  // Taps that have bits, with some to spare for depths behind the last.
  AOTI_INLINE bool has_bits() const { return sizes.taps() <= 24; }
  AOTI_INLINE Position position(I outer, I outers) const {
    const I plane = sizes.out[0] * sizes.out[1] * sizes.out[2], image = outer / plane, pixel = outer % plane;
    const I o[3] = {pixel / sizes.out[2] / sizes.out[1], pixel / sizes.out[2] % sizes.out[1], pixel % sizes.out[2]};
    Position at;
    i64 first = image;
    AOTI_UNROLL_TIMES(3)
    for (int d = 0; d < 3; ++d) {
      at.start[d] = i32(o[d] * sizes.stride[d] - sizes.padding[d]);
      first = first * sizes.in[d] + at.start[d];
    }
    at.first = pointer + (first * sizes.in_channels + group * channels());
    at.taps = outer < outers;
    if (has_bits()) {
      // The taps along the last axis, as often as the axis before has taps that are inside, and so on.
      int apart = 1;
      AOTI_UNROLL_TIMES(3)
      for (int d = 2; d >= 0; --d) {
        u32 taps = 0;
        AOTI_UNROLL_TIMES(8)
        for (int k = 0; k < int(sizes.kernel[d]); ++k)
          if (u32(at.start[d] + i32(k * sizes.dilation[d])) < u32(sizes.in[d])) taps |= at.taps << k * apart;
        at.taps = taps;
        apart *= int(sizes.kernel[d]);
      }
    }
    return at;
  }
  // Elements from the first tap to another, along each axis.
  struct Steps {
    i32 reach[3];
  };
  AOTI_INLINE Steps steps(I tap) const {
    const I k[3] = {tap / sizes.kernel[2] / sizes.kernel[1], tap / sizes.kernel[2] % sizes.kernel[1], tap % sizes.kernel[2]};
    Steps steps;
    AOTI_UNROLL_TIMES(3)
    for (int d = 0; d < 3; ++d) steps.reach[d] = i32(k[d] * sizes.dilation[d]);
    return steps;
  }
  AOTI_INLINE bool is_inside(const Position &from, const Steps &steps) const {
    bool inside = true;
    AOTI_UNROLL_TIMES(3)
    for (int d = 0; d < 3; ++d)
      // One tap and no padding: every pixel is inside.
      if (sizes.kernel[d] != 1 || sizes.padding[d] != 0)
        inside = inside && u32(from.start[d] + steps.reach[d]) < u32(sizes.in[d]);
    return inside;
  }
  // Where the element at depth begin + at is, null where there is none. Begins are multiples of Step, and all threads have the
  // same; `at` is less than Step.
  template <int Step> AOTI_INLINE const T *find(const Position &from, I begin, int at, I depths) const {
    // Where a piece is of one tap, so is what is known of it.
    const I tap = channels() % Step == 0 ? begin / channels() : (begin + at) / channels(), depth = begin + at;
    const Steps steps = this->steps(tap);
    I step = 0;
    AOTI_UNROLL_TIMES(3)
    for (int d = 0; d < 3; ++d) step = step * sizes.in[d] + steps.reach[d];
    const bool is_pixel = has_bits() ? bool(from.taps >> tap & 1) : from.taps && is_inside(from, steps);
    const T *p = from.first + (step * sizes.in_channels + (begin - tap * channels()) + at);
    return is_pixel && depth < depths ? p : nullptr;
  }
  AOTI_INLINE T one(const Position &from, I depth) const {
    const T *p = find<1>(from, depth, 0, I(depth + 1));
    return p ? *p : T{};
  }
  template <int N, bool Aligned>
  AOTI_INLINE Piece<T, N> read(const Position &from, const Entry *, I, I, I depth, I depths) const {
    Piece<T, N> piece;
    if constexpr (Aligned) {
      const T *p = find<1>(from, depth, 0, depths);
      if (p) return detail::read_whole<T, N>(p);
      AOTI_UNROLL_TIMES(8)
      for (int i = 0; i < N; ++i) piece.at[i] = T{};
    } else {
      AOTI_UNROLL_TIMES(8)
      for (int i = 0; i < N; ++i) {
        const T *p = find<1>(from, I(depth + i), 0, depths);
        piece.at[i] = p ? *p : T{};
      }
    }
    return piece;
  }
};

// The weights of a transposed convolution, [in_channels][out_channels / groups][taps]: rows are output channels of a group,
// the depth runs over its input channels and the taps of each.
template <class T, class I> struct TransposedWeights {
  using Element = T;
  static constexpr Order order = Order::kLane;
  static constexpr bool kCopied = false;
  const T *pointer;
  ConvSizes<I> sizes;
  I group;

  template <int N> AOTI_INLINE bool is_aligned() const { return true; }
  struct Entry {};
  AOTI_INLINE Entry entry(I, I) const { return {}; }
  struct Position {
    I row;
    bool is_inside;
  };
  AOTI_INLINE Position position(I outer, I outers) const { return {outer, outer < outers}; }
  AOTI_INLINE T one(const Position &from, I depth) const {
    const I taps = sizes.taps(), channels = sizes.in_channels / sizes.groups, rows = sizes.out_channels / sizes.groups;
    return pointer[((group * channels + depth / taps) * rows + from.row) * taps + depth % taps];
  }
  template <int N, bool>
  AOTI_INLINE Piece<T, N> read(const Position &from, const Entry *, I, I, I depth, I depths) const {
    Piece<T, N> piece;
    AOTI_UNROLL_TIMES(8)
    for (int i = 0; i < N; ++i) piece.at[i] = from.is_inside && depth + i < depths ? one(from, depth + i) : T{};
    return piece;
  }
};

AOTI_NAMESPACE_END
