// Checks vec.h against scalar code: every operation on a full register, a wider and a narrower vector, one lane, and on
// every tail; half-precision conversions on all bit patterns.
#include "aoti/nest.h"
#include "aoti/vec.h"

#include <cmath>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <sys/mman.h>
#include <unistd.h>

using namespace aoti;

namespace {

int failures = 0;

#define EXPECT(CONDITION, ...)                       \
  if (!(CONDITION)) {                                \
    if (++failures < 50) {                           \
      std::printf("FAIL line %d: ", __LINE__);       \
      std::printf(__VA_ARGS__);                      \
      std::printf("\n");                             \
    }                                                \
  }

template <class T> bool same(T a, T b) {
  if (a != a && b != b) return true;
  return std::memcmp(&a, &b, sizeof a) == 0;
}
template <> bool same(bool a, bool b) { return a == b; }

// Interesting values of each type, repeated with small variations.
template <class T> T sample(int i) {
  if constexpr (is_float<T>) {
    const T special[] = {T(0), T(-0.0), T(1), T(-1), T(0.5), T(-1.5), T(2.5), T(-3.5), T(INFINITY), T(-INFINITY),
                         T(NAN), T(7.25), T(-100.75), T(3e9), T(1e-40), T(-8388609.0)};
    return i % 3 == 0 ? special[(i / 3) % 16] : T((i * 37 % 101) - 50) * T(0.37);
  } else {
    const T special[] = {T(0), T(1), T(-1), Limits<T>::max, Limits<T>::lowest, T(7), T(-7), T(100)};
    return i % 2 == 0 ? special[(i / 2) % 8] : T((i * 37 % 101) - 50);
  }
}

template <int W, class T, class F, class G> void binary(const char *name, F f, G g) {
  for (int round = 0; round < 40; ++round) {
    T a[W], b[W];
    for (int i = 0; i < W; ++i) a[i] = sample<T>(i + round * 5), b[i] = sample<T>(i * 7 + round * 3 + 1);
    auto v = f(load(Full<W>{}, a), load(Full<W>{}, b));
    for (int i = 0; i < W; ++i) {
      auto want = g(a[i], b[i]);
      decltype(want) got = lane(v, i);
      EXPECT(same(got, want), "%s<%d bytes, %d lanes>(%g, %g) = %g, want %g", name, int(sizeof(T)), W, double(a[i]),
             double(b[i]), double(got), double(want));
    }
  }
}

#define BINARY(NAME, VECTOR, SCALAR) \
  binary<W, T>(NAME, [](auto a, auto b) { (void)b; return VECTOR; }, [](T a, T b) { (void)b; return SCALAR; });

template <int W, class T> void common_operations() {
  BINARY("+", a + b, T(is_float<T> ? a + b : T(u64(a) + u64(b))))
  BINARY("-", a - b, T(is_float<T> ? a - b : T(u64(a) - u64(b))))
  BINARY("==", a == b, bool(a == b))
  BINARY("!=", a != b, bool(a != b))
  BINARY("<", a < b, bool(a < b))
  BINARY("<=", a <= b, bool(a <= b))
  BINARY(">", a > b, bool(a > b))
  BINARY(">=", a >= b, bool(a >= b))
  BINARY("mask and", (a < b) & (b > T(0)), bool(a < b && b > T(0)))
  BINARY("mask not or", ~(a < b) | (b == T(1)), bool(!(a < b) || b == T(1)))
  BINARY("select", select(a < b, a, b), T(a < b ? a : b))
  BINARY("minimum", minimum(a, b), T(a != a ? a : b != b ? b : b < a ? b : a))
  BINARY("maximum", maximum(a, b), T(a != a ? a : b != b ? b : b > a ? b : a))
  BINARY("fmin", fmin(a, b), T(a != a ? b : b != b ? a : a < b ? a : b))
  BINARY("fmax", fmax(a, b), T(a != a ? b : b != b ? a : a > b ? a : b))
  BINARY("scalar right", a + T(3), T(is_float<T> ? a + T(3) : T(u64(a) + 3)))
  BINARY("to bool", cast<bool>(a), bool(a != T(0)))
}

template <int W, class T> void float_operations() {
  BINARY("*", a * b, a * b)
  BINARY("/", a / b, a / b)
  BINARY("neg", -a, -a)
  BINARY("abs", abs(a), std::fabs(a))
  BINARY("floor", floor(a), std::floor(a))
  BINARY("ceil", ceil(a), std::ceil(a))
  BINARY("trunc", trunc(a), std::trunc(a))
  BINARY("round", round(a), std::nearbyint(a))
  BINARY("sqrt", sqrt(a), std::sqrt(a))
  BINARY("fma", fma(a, b, a), std::fma(a, b, a))
  BINARY("copysign", copysign(a, b), std::copysign(a, b))
  BINARY("fmod", fmod(a, b), std::fmod(a, b))
  BINARY("isnan", isnan(a), bool(a != a))
  BINARY("isinf", isinf(a), bool(std::isinf(a)))
  BINARY("isfinite", isfinite(a), bool(std::isfinite(a)))
  BINARY("signbit", signbit(a), bool(std::signbit(a)))
  using Other = conditional<is_same<T, f32>, f64, f32>;
  BINARY("other float", cast<Other>(a), Other(a))
}

template <int W, class T> void integer_operations() {
  BINARY("*", a * b, T(u64(a) * u64(b)))
  BINARY("&", a & b, T(a & b))
  BINARY("^", a ^ b, T(a ^ b))
  constexpr int bits = 8 * sizeof(T);
  BINARY("<<", a << b, T(b >= 0 && b < T(bits) ? T(u64(a) << (b & (bits - 1))) : 0))
  BINARY(">>", a >> b, T(b >= 0 && b < T(bits) ? a >> (b & (bits - 1)) : is_signed<T> && a < 0 ? -1 : 0))
  BINARY("trunc_div", trunc_div(a, b), T(b == 0 ? 0 : b == T(-1) && is_signed<T> ? T(0 - u64(a)) : T(a / b)))
  BINARY("fmod", fmod(a, b), T(b == 0 ? 0 : b == T(-1) && is_signed<T> ? T(0) : T(a % b)))
  BINARY("floor_div", floor_div(a, b),
         T(b == 0 ? 0 : b == T(-1) && is_signed<T> ? T(0 - u64(a)) : T(a / b - (a % b != 0 && (a % b < 0) != (b < 0)))))
  BINARY("remainder", remainder(a, b),
         T(b == 0 || (b == T(-1) && is_signed<T>) ? 0 : a % b + (a % b != 0 && (a % b < 0) != (b < 0) ? b : T(0))))
  BINARY("abs", abs(a), T(a < 0 ? 0 - u64(a) : u64(a)))
  BINARY("to f32", cast<f32>(a), f32(a))
  BINARY("to f64", cast<f64>(a), f64(a))
  BINARY("to i8", cast<i8>(a), i8(a))
  BINARY("to u8", cast<u8>(a), u8(a))
  BINARY("to i16", cast<i16>(a), i16(a))
  BINARY("to i32", cast<i32>(a), i32(a))
  BINARY("to i64", cast<i64>(a), i64(a))
}

// Quotients of wide integers that are next to the next one, with as many bits as doubles hold exactly and one more.
template <int W> void wide_quotients() {
  const i64 divisors[] = {1, -1, 2, 3, -3, 7, 1000003, -67108865, (i64(1) << 51) - 1, 1 - (i64(1) << 52), 0};
  const int lengths[] = {20, 51, 52, 53};
  for (int bits : lengths)
    for (i64 divisor : divisors) {
      i64 a[W], b[W];
      for (int i = 0; i < W; ++i) {
        const i64 near = (i64(1) << bits) - i / 3 * (divisor / 2 + 1);
        b[i] = divisor, a[i] = (divisor == 0 ? near : near / divisor * divisor) + i % 3 - 1;
        if (i % 2) a[i] = -a[i];
      }
      const auto x = load(Full<W>{}, a), y = load(Full<W>{}, b);
      const auto quotient = trunc_div(x, y), down = floor_div(x, y), rest = remainder(x, y);
      for (int i = 0; i < W; ++i) {
        const i64 q = b[i] == 0 ? 0 : a[i] / b[i], r = b[i] == 0 ? 0 : a[i] % b[i];
        const bool is_between = r != 0 && (r < 0) != (b[i] < 0);
        EXPECT(lane(quotient, i) == q && lane(down, i) == q - is_between && lane(rest, i) == (is_between ? r + b[i] : r),
               "%lld / %lld = %lld", (long long)a[i], (long long)b[i], (long long)lane(quotient, i));
      }
    }
}

template <int W, class T> void float_to_integer() {
  T a[W];
  for (int i = 0; i < W; ++i) a[i] = T((i * 37 % 101) - 50) * T(1.7);
  auto v = load(Full<W>{}, a);
  for (int i = 0; i < W; ++i) {
    EXPECT(lane(cast<i64>(v), i) == i64(a[i]), "to i64 of %g", double(a[i]));
    EXPECT(lane(cast<i32>(v), i) == i32(a[i]), "to i32 of %g", double(a[i]));
    EXPECT(lane(cast<i16>(v), i) == i16(a[i]), "to i16 of %g", double(a[i]));
    EXPECT(lane(cast<i8>(v), i) == i8(a[i]), "to i8 of %g", double(a[i]));
    EXPECT(lane(cast<u8>(v), i) == u8(i32(a[i])), "to u8 of %g", double(a[i]));
  }
}

// Bytes that are rounded, moved and limited, against the functions one by one.
template <int W, class To> void quantised_bytes(f32 zero) {
  const f32 inf = __builtin_inff();
  const f32 numbers[] = {0.0f,   -0.0f,  0.5f,   1.5f,    2.5f,    -0.5f,   -1.5f,  0.49999997f, 254.5f, 255.5f, 127.5f, -128.5f,
                         -129.f, 300.0f, -3e9f,  3e9f,    2147483648.0f,    -2147483648.0f, 1e30f, -1e30f, inf, -inf, __builtin_nanf(""), 77.3f};
  constexpr int count = sizeof numbers / sizeof numbers[0];
  for (int first = 0; first < count; ++first) {
    f32 a[W];
    for (int i = 0; i < W; ++i) a[i] = numbers[(first + i) % count];
    const auto got = quantised<To>(load(Full<W>{}, a), zero);
    for (int i = 0; i < W; ++i) {
      const f32 moved = std::nearbyint(a[i]) + zero;
      const To wanted = a[i] != a[i]                  ? To(0)
                        : moved < Limits<To>::lowest ? Limits<To>::lowest
                        : moved > Limits<To>::max    ? Limits<To>::max
                                                     : To(moved);
      EXPECT(lane(got, i) == wanted, "quantised %g plus %g", double(a[i]), double(zero));
    }
  }
}

// Loads, stores and their strided and indexed forms with n of W lanes, between guard elements.
template <int W, class T, class L> void memory(L lanes, int n) {
  constexpr int room = 4 * W + 8;
  alignas(T) unsigned char source_bytes[room * sizeof(T)], target_bytes[room * sizeof(T)];
  for (unsigned i = 0; i < sizeof source_bytes; ++i) source_bytes[i] = is_same<T, bool> ? i % 3 == 0 : i * 7 % 120;
  const T *source = (const T *)source_bytes;
  T *target = (T *)target_bytes;
  Vec<i64, W> index = iota(lanes, 3 * W, -3);
  auto check = [&](const char *what, auto value, auto from, auto to) {
    (void)value;
    for (int i = 0; i < n; ++i)
      EXPECT(std::memcmp(source + from(i), target + to(i), sizeof(T)) == 0, "%s<%d bytes> lane %d of %d", what,
             int(sizeof(T)), i, n);
    for (int k = 0; k < room; ++k) {
      bool used = false;
      for (int i = 0; i < n; ++i) used |= to(i) == k;
      if (!used)
        for (unsigned b = 0; b < sizeof(T); ++b)
          EXPECT(target_bytes[k * sizeof(T) + b] == 0xee, "%s<%d bytes> wrote element %d of %d", what, int(sizeof(T)), k, n);
    }
    std::memset(target_bytes, 0xee, sizeof target_bytes);
  };
  std::memset(target_bytes, 0xee, sizeof target_bytes);
  auto same_place = [](int i) { return i + 1; };
  auto v = load(lanes, source + 1);
  store(lanes, target + 1, v);
  check("load, store", v, same_place, same_place);
  auto s = load_strided(lanes, source, 3);
  store_strided(lanes, target, 2, s);
  check("strided", s, [](int i) { return 3 * i; }, [](int i) { return 2 * i; });
  auto e = load_every<2>(lanes, source + 1);
  store_strided(lanes, target, 3, e);
  check("every second", e, [](int i) { return 1 + 2 * i; }, [](int i) { return 3 * i; });
  auto r = load_every<-1>(lanes, source + W);
  store(lanes, target + 1, r);
  check("reversed", r, [](int i) { return W - i; }, same_place);
  for (int left = 1; left <= W; ++left) {
    auto w = load_wrapped(lanes, source + 2 * W, left, -2 * W);
    store(lanes, target + 1, w);
    check("wrapped", w, [=](int i) { return i < left ? 2 * W + i : i; }, same_place);
  }
  auto g = gather(lanes, source, index);
  scatter(lanes, target, index, g);
  check("gather, scatter", g, [](int i) { return 3 * W - 3 * i; }, [](int i) { return 3 * W - 3 * i; });
}

template <int W, class T> void all_memory() {
  memory<W, T>(Full<W>{}, W);
  for (int n = 0; n <= W && n < 64; ++n) memory<W, T>(Tail<W>{n}, n);
}

// Lanes [low, high) of elements that are Step apart, and the same by a mask: in memory that ends with the last of them.
template <i64 Step, class T, int W> void window(T *end) {
  for (int low = -2; low <= W + 1; ++low)
    for (int high = -1; high <= W + 2; ++high) {
      const int first = low < 0 ? 0 : low, last = high > W ? W : high;
      const T *p = end - 1 - i64(last - 1) * Step;
      auto check = [&](const char *what, auto value) {
        for (int i = 0; i < W; ++i) {
          const bool is_live = i >= first && i < last;
          EXPECT(lane(value, i) == (is_live ? p[i * Step] : T(77)),
                 "%s<%d bytes> by %d, lane %d of [%d, %d)", what, int(sizeof(T)), int(Step), i, low, high);
        }
      };
      check("load_between", load_between<Step>(Full<W>{}, p, low, high, true, T(77)));
      const Vec<i64, W> at = iota(Full<W>{}, 0);
      check("gather_where", gather_where(Full<W>{}, p, at * Step, (at >= i64(low)) & (at < i64(high)), T(77)));
    }
}
// Channels of pixels from any one on, in planes of which each ends with the last pixel that is asked for of the last one.
template <int C, class T, int W> void interleaved(T *end) {
  for (int phase = 0; phase < C; ++phase)
    for (int n = 1; n <= W; ++n) {
      const int pixels = (phase + n - 1) / C + 1, plane = pixels + 3, last_channel = (phase + n - 1) % C;
      // The last element of all is in the plane of the last channel, or in a later one a pixel before.
      const int behind = pixels > 1 ? max_i64((C - 1) * plane + pixels - 2, last_channel * plane + pixels - 1)
                                    : last_channel * plane;
      const T *first = end - 1 - behind;
      auto check = [&](auto value) {
        for (int i = 0; i < n; ++i) {
          const T want = first[(phase + i) / C + (phase + i) % C * plane];
          EXPECT(lane(value, i) == want, "lane %d of %d from channel %d of %d", i, n, phase, C);
        }
      };
      check(load_interleaved<C>(Tail<W>{n}, first + phase * plane, phase, plane));
      if (n == W) check(load_interleaved<C>(Full<W>{}, first + phase * plane, phase, plane));
    }
}

// The same of pixels within an image, some of whose channels have no plane, which ends with the last pixel that is asked for.
template <int C, int Planes, class T, int W> void image(T *end) {
  for (int low = 0; low <= W / C; ++low)
    for (int high = low; high <= W / C + 1; ++high)
      for (int n = 1; n <= W; ++n) {
        const int behind = min_i64(high, (n - 1) / C + 1), plane = W + 3;
        const T *first = end - (Planes - 1) * plane - max_i64(behind, 0);
        auto check = [&](auto value, bool some) {
          for (int i = 0; i < n; ++i) {
            const bool is_there = some && i / C >= low && i / C < high && i % C < Planes;
            const T want = is_there ? first[i / C + i % C * plane] : T(77);
            EXPECT(lane(value, i) == want, "lane %d of %d, pixels [%d, %d) of %d channels", i, n, low, high, C);
          }
        };
        check(load_image<C, Planes>(Tail<W>{n}, first, plane, low, high, true, T(77)), true);
        if (n == W) check(load_image<C, Planes>(Full<W>{}, first, plane, low, high, true, T(77)), true);
        check(load_image<C, Planes>(Tail<W>{n}, first, plane, low, high, false, T(77)), false);
      }
}

template <class T, int W> void windows() {
  // The page behind the elements cannot be read.
  const i64 page = sysconf(_SC_PAGESIZE);
  char *pages = (char *)mmap(nullptr, size_t(2 * page), PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
  mprotect(pages + page, size_t(page), PROT_NONE);
  T *end = (T *)(pages + page);
  for (int i = 1; i <= 4 * W; ++i) end[-i] = T(100 + i % 20);
  window<1, T, W>(end), window<2, T, W>(end), window<3, T, W>(end), window<4, T, W>(end), window<7, T, W>(end);
  window<8, T, W>(end), window<9, T, W>(end);
  for (int i = 1; i <= 400; ++i) end[-i] = T(i * 7 % 111);
  interleaved<2, T, W>(end), interleaved<3, T, W>(end), interleaved<5, T, W>(end);
  image<4, 3, T, W>(end), image<2, 1, T, W>(end), image<4, 4, T, W>(end);
  munmap(pages, size_t(2 * page));
}

template <i64 D, int W> void divide_by(Vec<i64, W> a) {
  const Vec<i64, W> quotient = floor_div_by<D>(a), rest = remainder_by<D>(a);
  for (int i = 0; i < W; ++i) {
    const i64 x = lane(a, i), want = x / D - (x % D < 0);
    EXPECT(lane(quotient, i) == want && lane(rest, i) == x - want * D, "%lld by %lld", (long long)x, (long long)D);
  }
}
template <int W> void divisions() {
  const i64 middles[] = {0, 1000000007, -77777777777, i64(1) << 51, -(i64(1) << 51), 5 * (i64(1) << 60)};
  for (i64 middle : middles)
    for (i64 step = 1; step < 10000; step = 31 * step + 2) {
      const Vec<i64, W> a = iota(Full<W>{}, middle - step * W / 2, step);
      divide_by<1>(a), divide_by<2>(a), divide_by<3>(a), divide_by<7>(a), divide_by<64>(a), divide_by<99991>(a);
    }
}

template <int W> void reductions() {
  f32 a[W];
  f64 sum = 0;
  for (int i = 0; i < W; ++i) a[i] = f32(i * i % 17) - 3, sum += a[i];
  auto v = load(Full<W>{}, a);
  EXPECT(reduce_add(v) == f32(sum), "reduce_add %d", W);
  EXPECT(reduce_max(iota32(Full<W>{}, 5, 2)) == 5 + 2 * (W - 1), "reduce_max");
  EXPECT(reduce_min(iota(Full<W>{}, 5, -2)) == 5 - 2 * (W - 1), "reduce_min");
  EXPECT(any(v == a[W - 1]) && !any(v == 1e9f) && all(v > -4.0f) && !all(v != a[0]), "any and all of %d", W);
  for (int n = 0; n < W; ++n) {
    f32 expected = 0;
    for (int i = 0; i < n; ++i) expected += a[i];
    EXPECT(reduce_add(select_tail(Tail<W>{n}, v, 0.0f)) == expected, "select_tail %d of %d", n, W);
  }
  a[W / 2] = NAN;
  EXPECT(std::isnan(reduce_max(load(Full<W>{}, a))), "NaN through reduce_max");
}

template <int W> void width() {
  common_operations<W, f32>(), common_operations<W, i64>();
  float_operations<W, f32>(), float_operations<W, f64>();
  integer_operations<W, i8>(), integer_operations<W, i32>();
  float_to_integer<W, f32>(), float_to_integer<W, f64>();
  quantised_bytes<W, u8>(0), quantised_bytes<W, u8>(37), quantised_bytes<W, i8>(0), quantised_bytes<W, i8>(-5);
  divisions<W>();
  windows<f32, W>(), windows<i8, W>(), windows<i64, W>();
  all_memory<W, f32>(), all_memory<W, f64>(), all_memory<W, bool>(), all_memory<W, f16>();
  reductions<W>();
#ifdef THOROUGH
  common_operations<W, f64>(), common_operations<W, i8>(), common_operations<W, i16>(), common_operations<W, i32>();
  integer_operations<W, i16>(), integer_operations<W, i64>(), integer_operations<W, u8>();
  wide_quotients<W>();
  all_memory<W, i8>(), all_memory<W, i16>(), all_memory<W, i32>(), all_memory<W, i64>(), all_memory<W, u8>();
  all_memory<W, bf16>();
#endif
}

// By definition: sign, exponent and fraction of binary16.
double half_value(unsigned bits) {
  int exponent = bits >> 10 & 31, fraction = bits & 1023;
  double m = exponent == 31 ? (fraction ? NAN : INFINITY)
                            : exponent ? std::ldexp(1024 + fraction, exponent - 25) : std::ldexp(fraction, -24);
  return bits & 0x8000 ? -m : m;
}

void half_precision() {
  constexpr int W = 16;
  for (unsigned base = 0; base < 65536; base += W) {
    f16 h[W], back[W];
    bf16 b[W], back_b[W];
    f32 wide[W];
    for (int i = 0; i < W; ++i) h[i].bits = b[i].bits = u16(base + i);
    auto v = load(Full<W>{}, h);
    store(Full<W>{}, wide, v);
    store(Full<W>{}, back, v);
    store(Full<W>{}, back_b, load(Full<W>{}, b));
    for (int i = 0; i < W; ++i) {
      EXPECT(same(wide[i], f32(half_value(base + i))) || std::isnan(wide[i]), "f16 %x", base + i);
      EXPECT(same(to_f32(h[i]), f32(half_value(base + i))) || std::isnan(wide[i]), "scalar f16 %x", base + i);
      EXPECT(back[i].bits == base + i || (std::isnan(wide[i]) && std::isnan(half_value(back[i].bits))), "f16 there and back %x", base + i);
      EXPECT(back_b[i].bits == base + i || std::isnan(to_f32(b[i])), "bf16 there and back %x", base + i);
    }
  }
  // Rounding: ties to even, and either side of them.
  for (u64 bits = 0; bits < (u64(1) << 32); bits += 0x1001 * W) {
    f32 x[W];
    f16 h[W];
    bf16 b[W];
    for (int i = 0; i < W; ++i) {
      u32 pattern = u32(bits) + 0x1001u * i;
      if (i & 1) pattern = (pattern & ~0x1fffu) | 0x1000; // a tie of f16
      if ((i & 3) == 2) pattern = (pattern & ~0xffffu) | 0x8000; // a tie of bf16
      std::memcpy(&x[i], &pattern, 4);
    }
    auto v = load(Full<W>{}, x);
    store(Full<W>{}, h, v);
    store(Full<W>{}, b, v);
    for (int i = 0; i < W; ++i) {
      f16 expected = to_f16(x[i]);
      bf16 expected_b = to_bf16(x[i]);
      if (std::isnan(x[i])) {
        EXPECT(std::isnan(to_f32(h[i])) && std::isnan(to_f32(b[i])) && std::isnan(to_f32(expected)), "NaN of %a", x[i]);
        continue;
      }
      EXPECT(h[i].bits == expected.bits, "to f16 of %a: %x, want %x", x[i], h[i].bits, expected.bits);
      EXPECT(b[i].bits == expected_b.bits, "to bf16 of %a", x[i]);
      double here = std::fabs(half_value(expected.bits) - x[i]);
      if ((expected.bits & 0x7fff) < 0x7bff && (expected.bits & 0x7fff) > 0)
        EXPECT(here <= std::fabs(half_value(expected.bits + 1) - x[i]) && here <= std::fabs(half_value(expected.bits - 1) - x[i]),
               "to_f16 of %a is not the nearest", x[i]);
    }
  }
}

} // namespace

int main() {
  width<AOTI_LANES>();
#ifdef THOROUGH
  width<1>(), width<2 * AOTI_LANES>();
#endif
  half_precision();
  return failures != 0;
}
