// Loads of contiguous elements, and stores: contiguous, strided and indexed, whole or of the first n lanes only.
// `bool` elements are bytes and become a Mask; elements of narrow types become f32 vectors. Memory beyond the lanes in
// use is neither read nor written. See vec.h for the API.
#pragma once

#include "float8.h"

AOTI_NAMESPACE_BEGIN

namespace detail {

template <int... I, int W> AOTI_INLINE Vec<i32, W> count_lanes(Indices<I...>, Full<W>) {
  if constexpr (W == 1)
    return {0};
  else if constexpr (shape_of<i32, W> == kPair) {
    auto h = count_lanes(indices<W / 2>{}, Full<W / 2>{});
    return {h, h + i32(W / 2)};
  }
#if !AOTI_GPU
  else
    return {typename Vec<i32, W>::Register{I...}};
#endif
}
template <int W> AOTI_INLINE Vec<i32, W> count_lanes() { return count_lanes(indices<W>{}, Full<W>{}); }

#if AOTI_GPU
// What one instruction reads or writes.
template <class T, int W> struct alignas(W * sizeof(T)) Chunk {
  T lanes[W];
} __attribute__((may_alias));
#endif

template <int W, class T> AOTI_INLINE Vec<T, W> load_raw(Full<W>, const T *p) {
  Vec<T, W> r;
#if AOTI_GPU
  if constexpr (W == 1) return {*p};
  else if constexpr (W * sizeof(T) <= 16) {
    if (uintptr_t(p) % (W * sizeof(T)) == 0) {
      Chunk<T, W> chunk = *(const Chunk<T, W> *)p;
      __builtin_memcpy(&r, &chunk, sizeof r);
      return r;
    }
  }
#endif
  if constexpr (shape_of<T, W> == kPair)
    r = {load_raw(Full<W / 2>{}, p), load_raw(Full<W / 2>{}, p + W / 2)};
  else
    __builtin_memcpy(&r.v, p, sizeof r.v);
  return r;
}
template <int W, class T> AOTI_INLINE void store_raw(Full<W>, T *p, Vec<T, W> a) {
#if AOTI_GPU
  if constexpr (W == 1) {
    *p = a.v;
    return;
  } else if constexpr (W * sizeof(T) <= 16) {
    if (uintptr_t(p) % (W * sizeof(T)) == 0) {
      Chunk<T, W> chunk;
      __builtin_memcpy(&chunk, &a, sizeof a);
      *(Chunk<T, W> *)p = chunk;
      return;
    }
  }
#endif
  if constexpr (shape_of<T, W> == kPair) {
    store_raw(Full<W / 2>{}, p, a.lo);
    store_raw(Full<W / 2>{}, p + W / 2, a.hi);
  } else
    __builtin_memcpy(p, &a.v, sizeof a.v);
}

#if AOTI_AVX2
typedef char v16c __attribute__((vector_size(16)));
typedef char v32c __attribute__((vector_size(32)));
typedef short v8s __attribute__((vector_size(16)));
typedef short v16s __attribute__((vector_size(32)));
typedef int v4i __attribute__((vector_size(16)));
typedef int v8i __attribute__((vector_size(32)));
typedef int v16i __attribute__((vector_size(64)));
typedef long long v2l __attribute__((vector_size(16)));
typedef long long v4l __attribute__((vector_size(32)));
typedef long long v8l __attribute__((vector_size(64)));
// The two compilers disagree on the pointer type of the masked byte and word builtins.
#if defined(__clang__)
#define AOTI_NARROW(VECTOR, SCALAR) VECTOR
#else
#define AOTI_NARROW(VECTOR, SCALAR) SCALAR
#endif
#endif

#if !AOTI_GPU
// Whether processors read numbers of any address as fast as others.
constexpr bool kReadsAnyAddress = AOTI_SSE2 || AOTI_AARCH64;
typedef u64 Pair __attribute__((vector_size(16)));
struct SixteenBytes {
  u64 low, high;
};
template <class T> AOTI_INLINE u64 peek_bytes(const char *p) {
  T own;
  __builtin_memcpy(&own, p, sizeof own);
  return own;
}
template <class T> AOTI_INLINE void poke_bytes(char *p, u64 bits) {
  const T own = T(bits);
  __builtin_memcpy(p, &own, sizeof own);
}
// The first n bytes, up to 16, the others zero: what there is is read from both ends.
AOTI_INLINE SixteenBytes load_bytes(const char *p, int n) {
  if (n > 8) return {peek_bytes<u64>(p), peek_bytes<u64>(p + n - 8) >> (128 - 8 * n)};
  if (n >= 4) return {peek_bytes<u32>(p) | peek_bytes<u32>(p + n - 4) << (8 * n - 32), 0};
  if (n >= 2) return {peek_bytes<u16>(p) | peek_bytes<u16>(p + n - 2) << (8 * n - 16), 0};
  return {n > 0 ? peek_bytes<u8>(p) : 0, 0};
}
AOTI_INLINE void store_bytes(char *p, int n, SixteenBytes own) {
  if (n > 8) {
    poke_bytes<u64>(p, own.low);
    poke_bytes<u64>(p + n - 8, own.low >> 8 >> (8 * n - 72) | own.high << (128 - 8 * n));
  } else if (n >= 4) {
    poke_bytes<u32>(p, own.low);
    poke_bytes<u32>(p + n - 4, own.low >> (8 * n - 32));
  } else if (n >= 2) {
    poke_bytes<u16>(p, own.low);
    poke_bytes<u16>(p + n - 2, own.low >> (8 * n - 16));
  } else if (n > 0)
    *p = char(own.low);
}
#if AOTI_AVX2
// The first n words of eight: from both ends, as a store under a mask is dozens of instructions within some processors.
AOTI_INLINE void store_words(char *p, int n, v8i words) {
  if (n >= 4) {
    const v8i from = (v8i){0, 1, 2, 3, 4, 5, 6, 7} + (n - 4);
    const v8i end = __builtin_ia32_permvarsi256(words, from);
    __builtin_memcpy(p, &words, 16);
    __builtin_memcpy(p + 4 * (n - 4), &end, 16);
  } else {
    Pair low;
    __builtin_memcpy(&low, &words, 16);
    store_bytes(p, 4 * n, {low[0], low[1]});
  }
}
#endif
template <int W, class T> AOTI_INLINE Vec<T, W> load_elements(const T *p, int n) {
  if constexpr (kReadsAnyAddress && W * sizeof(T) <= 16) {
    const SixteenBytes own = load_bytes((const char *)p, n * int(sizeof(T)));
    if constexpr (W * sizeof(T) == 16)
      return {(typename Vec<T, W>::Register)Pair{own.low, own.high}};
    else
      return {bit_cast<typename Vec<T, W>::Register>(conditional<W * sizeof(T) == 8, u64, conditional<W * sizeof(T) == 4, u32, u16>>(own.low))};
  } else {
    T buffer[W] = {};
    for (int i = 0; i < n; ++i) buffer[i] = p[i];
    return load_raw(Full<W>{}, buffer);
  }
}
template <int W, class T> AOTI_INLINE void store_elements(T *p, Vec<T, W> a, int n) {
  if constexpr (kReadsAnyAddress && W * sizeof(T) <= 16) {
    SixteenBytes own = {};
    if constexpr (W * sizeof(T) == 16)
      own = {((Pair)a.v)[0], ((Pair)a.v)[1]};
    else
      __builtin_memcpy(&own, &a.v, sizeof a.v);
    store_bytes((char *)p, n * int(sizeof(T)), own);
  } else {
    T buffer[W];
    __builtin_memcpy(buffer, &a.v, sizeof a.v);
    for (int i = 0; i < n; ++i) p[i] = buffer[i];
  }
}
#endif

// The first n lanes, n in 0..=W, the others zero.
template <int W, class T> AOTI_INLINE Vec<T, W> load_raw(Tail<W> tail, const T *p) {
  constexpr int bytes = W * int(sizeof(T));
  constexpr int size = sizeof(T);
  (void)size, (void)bytes;
  int n = tail.n;
  if constexpr (W == 1)
    return n > 0 ? Vec<T, W>{*p} : Vec<T, W>{T(0)};
  else if constexpr (shape_of<T, W> == kPair) {
    constexpr int h = W / 2;
#if AOTI_GPU
    if (n == W) return load_raw(Full<W>{}, p);
#endif
    return {load_raw(Tail<h>{n < h ? n : h}, p), load_raw(Tail<h>{n < h ? 0 : n - h}, p + h)};
  }
#if AOTI_AVX512
  else if constexpr (size == 4 && bytes == 64)
    return {(typename Vec<T, W>::Register)__builtin_ia32_loaddqusi512_mask((const int *)p, v16i{}, u16((1u << n) - 1))};
  else if constexpr (size == 8 && bytes == 64)
    return {(typename Vec<T, W>::Register)__builtin_ia32_loaddqudi512_mask(
        (const long long *)p, v8l{}, u8((1u << n) - 1))};
  else if constexpr (size == 2 && bytes == 32)
    return {(typename Vec<T, W>::Register)__builtin_ia32_loaddquhi256_mask(
        (const AOTI_NARROW(v16s, short) *)p, v16s{}, u16((1u << n) - 1))};
  else if constexpr (size == 1 && bytes == 16)
    return {(typename Vec<T, W>::Register)__builtin_ia32_loaddquqi128_mask(
        (const AOTI_NARROW(v16c, char) *)p, v16c{}, u16((1u << n) - 1))};
#endif
#if AOTI_AVX2
  else if constexpr (size == 4 && bytes == 32)
    return {(typename Vec<T, W>::Register)__builtin_ia32_maskloadd256((const v8i *)p, (v8i)(count_lanes<8>() < n).m.v)};
  else if constexpr (size == 8 && bytes == 32)
    return {(typename Vec<T, W>::Register)__builtin_ia32_maskloadq256(
        (const v4l *)p, (v4l)convert<i64>((count_lanes<4>() < n).m).v)};
#endif
#if !AOTI_GPU
  else
    return load_elements<W>(p, n);
#endif
}
template <int W, class T> AOTI_INLINE void store_raw(Tail<W> tail, T *p, Vec<T, W> a) {
  constexpr int bytes = W * int(sizeof(T));
  constexpr int size = sizeof(T);
  (void)size, (void)bytes;
  int n = tail.n;
  if constexpr (W == 1) {
    if (n > 0) *p = a.v;
  } else if constexpr (shape_of<T, W> == kPair) {
    constexpr int h = W / 2;
#if AOTI_GPU
    if (n == W) return store_raw(Full<W>{}, p, a);
#endif
    store_raw(Tail<h>{n < h ? n : h}, p, a.lo);
    store_raw(Tail<h>{n < h ? 0 : n - h}, p + h, a.hi);
  }
#if AOTI_AVX512
  else if constexpr (bytes == 64 && size == 4)
    __builtin_ia32_storedqusi512_mask((int *)p, (v16i)a.v, u16((1u << n) - 1));
  else if constexpr (bytes == 64 && size == 8)
    __builtin_ia32_storedqudi512_mask((long long *)p, (v8l)a.v, u8((1u << n) - 1));
  else if constexpr (bytes == 32 && size == 2)
    __builtin_ia32_storedquhi256_mask((AOTI_NARROW(v16s, short) *)p, (v16s)a.v, u16((1u << n) - 1));
  else if constexpr (bytes == 16 && size == 1)
    __builtin_ia32_storedquqi128_mask((AOTI_NARROW(v16c, char) *)p, (v16c)a.v, u16((1u << n) - 1));
#endif
#if AOTI_AVX2
  else if constexpr (size >= 4 && bytes == 32)
    store_words((char *)p, n * (size / 4), (v8i)a.v);
#endif
#if !AOTI_GPU
  else
    store_elements<W>(p, a, n);
#endif
}

// Lane i from f(i), a constant-index expression.
template <int W, class T, class F, int... I> AOTI_INLINE Vec<T, W> generate(F f, Indices<I...>) {
  if constexpr (W == 1)
    return {f(0)};
  else if constexpr (shape_of<T, W> == kPair) {
    constexpr int h = W / 2;
    return {generate<h, T>(f, indices<h>{}), generate<h, T>([&](int i) { return f(i + h); }, indices<h>{})};
  }
#if !AOTI_GPU
  else
    return {typename Vec<T, W>::Register{f(I)...}};
#endif
}
template <int W, class T, class F> AOTI_INLINE Vec<T, W> fill(Full<W>, F f) { return generate<W, T>(f, indices<W>{}); }
#if AOTI_GPU
template <int W, class T, class F> AOTI_INLINE Vec<T, W> fill(Tail<W> tail, F f) {
  return generate<W, T>([&](int i) { return i < tail.n ? T(f(i)) : T(0); }, indices<W>{});
}
#else
template <int W, class T, class F> AOTI_INLINE Vec<T, W> fill(Tail<W> tail, F f) {
  T buffer[W] = {};
  for (int i = 0; i < tail.n; ++i) buffer[i] = f(i);
  return load_raw(Full<W>{}, buffer);
}
#endif
template <int W> AOTI_INLINE int used(Full<W>) { return W; }
template <int W> AOTI_INLINE int used(Tail<W> tail) { return tail.n; }

// f16 <-> f32 on vectors.
#if AOTI_AVX2 && defined(__F16C__) && !__has_builtin(__builtin_ia32_vcvtph2ps256)
typedef _Float16 HalfRegister __attribute__((vector_size(16)));
#endif
template <int W> AOTI_INLINE Vec<f32, W> f32_from_f16(Vec<u16, W> a) {
  if constexpr (W == 1)
    return {to_f32(f16{a.v})};
  else if constexpr (shape_of<f32, W> == kPair)
    return join(f32_from_f16(lower(a)), f32_from_f16(upper(a)));
#if AOTI_AVX512
  else if constexpr (W == 16)
    return {(typename Vec<f32, 16>::Register)__builtin_ia32_vcvtph2ps512_mask(
        (v16s)a.v, typename Vec<f32, 16>::Register{}, u16(-1), 4)};
#endif
#if AOTI_AVX2 && defined(__F16C__)
  else if constexpr (W == 8)
#if __has_builtin(__builtin_ia32_vcvtph2ps256)
    return {__builtin_ia32_vcvtph2ps256((v8s)a.v)};
#else // from clang 22 on
    return {__builtin_convertvector((HalfRegister)a.v, typename Vec<f32, 8>::Register)};
#endif
#endif
#if !AOTI_GPU
  else {
    Vec<u32, W> wide = convert<u32>(a);
    Vec<u32, W> magnitude = shl<13>(wide & 0x7fffu);
    Vec<u32, W> bits = bits_as<u32>(bits_as<f32>(magnitude) * 0x1p112f);
    bits = bits | (bits_as<u32>((bits_as<i32>(magnitude) >= (0x7c00 << 13)).m) & 0x7f800000u);
    return bits_as<f32>(bits | shl<16>(wide & 0x8000u));
  }
#endif
}
template <int W> AOTI_INLINE Vec<u16, W> f16_from_f32(Vec<f32, W> a) {
  if constexpr (W == 1)
    return {to_f16(a.v).bits};
#if defined(__CUDA_ARCH__) && __CUDA_ARCH__ >= 800
  else if constexpr (W == 2) {
    const u32 both = to_f16s(a.lo.v, a.hi.v);
    return join(Vec<u16, 1>{u16(both)}, Vec<u16, 1>{u16(both >> 16)});
  }
#endif
  else if constexpr (shape_of<f32, W> == kPair)
    return join(f16_from_f32(a.lo), f16_from_f32(a.hi));
#if AOTI_AVX512
  else if constexpr (W == 16)
    return {(typename Vec<u16, 16>::Register)__builtin_ia32_vcvtps2ph512_mask(a.v, 0, v16s{}, u16(-1))};
#endif
#if AOTI_AVX2 && defined(__F16C__)
  else if constexpr (W == 8)
    return {(typename Vec<u16, 8>::Register)__builtin_ia32_vcvtps2ph256(a.v, 0)};
#endif
#if !AOTI_GPU
  else {
    // The three ranges of to_f16 (base.h), selected.
    Vec<i32, W> bits = bits_as<i32>(a);
    Vec<i32, W> sign = shr<16>(bits) & 0x8000;
    Vec<i32, W> magnitude = bits & 0x7fffffff;
    Vec<i32, W> normal = shr<13>(magnitude - 0x38000000 + 0xfff + (shr<13>(magnitude) & 1));
    Vec<i32, W> denormal = bits_as<i32>(bits_as<f32>(magnitude) + 0.5f) - 0x3f000000;
    Vec<i32, W> nan = (shr<13>(magnitude) & 0x3ff) | 0x7e00;
    Vec<i32, W> half = select(magnitude < 0x38800000, denormal, normal);
    half = select(magnitude >= 0x477ff000, 0x7c00, half);
    half = select(magnitude > 0x7f800000, nan, half);
    return convert<u16>(bits_as<u32>(half | sign));
  }
#endif
}
template <int W> AOTI_INLINE Vec<f32, W> f32_from_bf16(Vec<u16, W> a) {
  return bits_as<f32>(shl<16>(convert<u32>(a)));
}
template <int W> AOTI_INLINE Vec<u16, W> bf16_from_f32(Vec<f32, W> a) {
#if defined(__CUDA_ARCH__) && __CUDA_ARCH__ >= 800
  if constexpr (W == 1)
    return {to_bf16(a.v).bits};
  else if constexpr (W == 2) {
    const u32 both = to_bf16s(a.lo.v, a.hi.v);
    return join(Vec<u16, 1>{u16(both)}, Vec<u16, 1>{u16(both >> 16)});
  } else
    return join(bf16_from_f32(a.lo), bf16_from_f32(a.hi));
#endif
  Vec<u32, W> bits = bits_as<u32>(a);
  Vec<u32, W> rounded = shr<16>(bits + 0x7fffu + (shr<16>(bits) & 1u));
  return convert<u16>(select(a != a, shr<16>(bits) | 0x40u, rounded));
}

// How an element type is held in memory (Raw) and in lanes.
template <class T> struct Element {
  using Raw = T;
  template <int W> static AOTI_INLINE Vec<T, W> decode(Vec<T, W> a) { return a; }
  template <int W> static AOTI_INLINE Vec<T, W> encode(Vec<T, W> a) { return a; }
};
template <> struct Element<bool> {
  using Raw = u8;
  template <int W> static AOTI_INLINE Mask<W> decode(Vec<u8, W> a) { return convert<i32>(a) != 0; }
  template <int W> static AOTI_INLINE Vec<u8, W> encode(Mask<W> a) { return convert<u8>(a.m & 1); }
};
template <> struct Element<f16> {
  using Raw = u16;
  template <int W> static AOTI_INLINE Vec<f32, W> decode(Vec<u16, W> a) { return f32_from_f16(a); }
  template <int W> static AOTI_INLINE Vec<u16, W> encode(Vec<f32, W> a) { return f16_from_f32(a); }
};
template <> struct Element<bf16> {
  using Raw = u16;
  template <int W> static AOTI_INLINE Vec<f32, W> decode(Vec<u16, W> a) { return f32_from_bf16(a); }
  template <int W> static AOTI_INLINE Vec<u16, W> encode(Vec<f32, W> a) { return bf16_from_f32(a); }
};
template <int X, int M, int B, Ends E> struct Element<Float8<X, M, B, E>> : Float8Lanes<Float8<X, M, B, E>> {
  using Raw = u8;
};
template <class T> using raw_of = typename Element<T>::Raw;

template <> struct Cast<f16> {
  template <class A> static AOTI_INLINE auto from(A a) { return f32_from_f16(f16_from_f32(Cast<f32>::from(a))); }
};
template <> struct Cast<bf16> {
  template <class A> static AOTI_INLINE auto from(A a) { return f32_from_bf16(bf16_from_f32(Cast<f32>::from(a))); }
};

template <int X, int M, int B, Ends E> struct Cast<Float8<X, M, B, E>> {
  using Lanes = Float8Lanes<Float8<X, M, B, E>>;
  template <class A> static AOTI_INLINE auto from(A a) { return Lanes::decode(Lanes::encode(Cast<f32>::from(a))); }
};

// p read as raw elements, lane by lane without assuming that the storage structs alias integers; on GPUs as `load`
// does, because nvcc copies bytes one by one.
#if AOTI_GPU
template <class T> AOTI_INLINE raw_of<T> peek(const T *p) { return *(const raw_of<T> *)p; }
template <class T> AOTI_INLINE void poke(T *p, raw_of<T> x) { *(raw_of<T> *)p = x; }
#else
template <class T> AOTI_INLINE raw_of<T> peek(const T *p) {
  raw_of<T> r;
  __builtin_memcpy(&r, p, sizeof r);
  return r;
}
template <class T> AOTI_INLINE void poke(T *p, raw_of<T> x) { __builtin_memcpy(p, &x, sizeof x); }
#endif

} // namespace detail

template <class To, class T, int W> AOTI_INLINE auto cast(Vec<T, W> a) { return detail::Cast<To>::from(a); }
template <class To, int W> AOTI_INLINE auto cast(Mask<W> a) { return detail::Cast<To>::from(a); }

template <class L, class T> AOTI_INLINE auto load(L lanes, const T *p) {
  return detail::Element<T>::decode(detail::load_raw(lanes, (const detail::raw_of<T> *)p));
}
template <class L, class T, class V> AOTI_INLINE void store(L lanes, T *p, V a) {
  detail::store_raw(lanes, (detail::raw_of<T> *)p, detail::Element<T>::encode(a));
}
// Lane i at p + i * stride; loads of that form are in strided.h.
#if AOTI_GPU
// A loop over lanes that is unrolled, so that every lane stays in its register.
template <class L, class F, int... I> AOTI_INLINE void each_lane(L lanes, F f, Indices<I...>) {
  ((I < detail::used(lanes) ? f(I) : void()), ...);
}
template <class L, class T, class V> AOTI_INLINE void store_strided(L lanes, T *p, i64 stride, V a) {
  auto raw = detail::Element<T>::encode(a);
  each_lane(lanes, [&](int i) { detail::poke(p + i * stride, lane(raw, i)); }, indices<L::width>{});
}
#else
template <class L, class T, class V> AOTI_INLINE void store_strided(L lanes, T *p, i64 stride, V a) {
  detail::raw_of<T> buffer[L::width];
  detail::store_raw(Full<L::width>{}, buffer, detail::Element<T>::encode(a));
  for (int i = 0; i < detail::used(lanes); ++i) detail::poke(p + i * stride, buffer[i]);
}
#endif
// Lane i at p + index[i]. Lanes are stored in order, so the last of equal indices wins.
#if AOTI_GPU
template <class L, class T, class I, class V> AOTI_INLINE void scatter(L lanes, T *p, Vec<I, L::width> index, V a) {
  auto raw = detail::Element<T>::encode(a);
  each_lane(lanes, [&](int i) { detail::poke(p + lane(index, i), lane(raw, i)); }, indices<L::width>{});
}
#else
template <class L, class T, class I, class V> AOTI_INLINE void scatter(L lanes, T *p, Vec<I, L::width> index, V a) {
  detail::raw_of<T> buffer[L::width];
  I at[L::width];
  detail::store_raw(Full<L::width>{}, buffer, detail::Element<T>::encode(a));
  detail::store_raw(Full<L::width>{}, at, index);
  for (int i = 0; i < detail::used(lanes); ++i) detail::poke(p + at[i], buffer[i]);
}
#endif

// The same value in all lanes, also those that a Tail does not use.
template <class L, class T> AOTI_INLINE auto broadcast(L, T x) {
  if constexpr (is_same<T, bool>)
    return Mask<L::width>{splat<L::width>(-i32(x))};
  else if constexpr (is_narrow<T>)
    return splat<L::width>(to_f32(x));
  else
    return splat<L::width>(x);
}
// start + i * step.
template <class L> AOTI_INLINE Vec<i64, L::width> iota(L, i64 start, i64 step = 1) {
  return convert<i64>(detail::count_lanes<L::width>()) * step + start;
}
template <class L> AOTI_INLINE Vec<i32, L::width> iota32(L, i32 start, i32 step = 1) {
  return detail::count_lanes<L::width>() * step + start;
}

// The lanes in use, as a mask; and `a` with `neutral` in the lanes that are not.
template <int W> AOTI_INLINE Mask<W> active(Full<W>) { return {splat<W>(i32(-1))}; }
template <int W> AOTI_INLINE Mask<W> active(Tail<W> tail) { return detail::count_lanes<W>() < i32(tail.n); }
template <class T, int W> AOTI_INLINE Vec<T, W> select_tail(Full<W>, Vec<T, W> a, identity<T>) { return a; }
template <class T, int W> AOTI_INLINE Vec<T, W> select_tail(Full<W>, Vec<T, W> a, Vec<T, W>) { return a; }
template <class T, int W> AOTI_INLINE Vec<T, W> select_tail(Tail<W> tail, Vec<T, W> a, identity<T> neutral) {
  return select(active(tail), a, splat<W, T>(neutral));
}
template <class T, int W> AOTI_INLINE Vec<T, W> select_tail(Tail<W> tail, Vec<T, W> a, Vec<T, W> neutral) {
  return select(active(tail), a, neutral);
}
template <int W> AOTI_INLINE Mask<W> select_tail(Full<W>, Mask<W> a, bool) { return a; }
template <int W> AOTI_INLINE Mask<W> select_tail(Tail<W> tail, Mask<W> a, bool neutral) {
  return neutral ? a | ~active(tail) : a & active(tail);
}

AOTI_NAMESPACE_END
