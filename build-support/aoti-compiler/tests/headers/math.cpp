// Measures the f32 functions of math.h against libm in f64: prints the largest error of each in ULP and fails above the
// bound given beside it. `STRIDE` (every n-th bit pattern) sets how dense the arguments are.
#include "aoti/math.h"

#include <cmath>
#include <cstdio>
#include <cstdlib>
#include <cstring>

using namespace aoti;

namespace {

constexpr int W = AOTI_LANES;
int failures = 0;

double ulp_error(float got, double want) {
  float rounded = (float)want;
  if (std::isnan(want)) return std::isnan(got) ? 0 : 1e30;
  if (std::isnan(got)) return 1e30;
  if (std::isinf(rounded) || std::isinf(got)) {
    if (got == rounded) return 0;
    // One step beyond the largest number counts as half a ULP when the true value is that close.
    return std::fabs(want) > 3.4028233e38 && std::fabs(want) < 3.402825e38 && std::signbit(got) == std::signbit(rounded) ? 1 : 1e30;
  }
  if (want == 0 || rounded == 0) {
    if (got == 0) return want == 0 && std::signbit(got) != std::signbit(want) ? 1e30 : 0;
  }
  int exponent;
  std::frexp(want, &exponent);
  if (exponent < -125) exponent = -125;
  return std::fabs((double)got - want) / std::ldexp(1.0, exponent - 24);
}

float from_bits(uint32_t bits) {
  float f;
  std::memcpy(&f, &bits, 4);
  return f;
}

void report(const char *name, double worst, double at, double at2, double bound) {
  std::printf("%-10s %.3f at %a %a\n", name, worst, at, at2);
  if (!(worst <= bound)) {
    std::printf("FAIL %s: %g ULP exceeds %g\n", name, worst, bound);
    ++failures;
  }
}

template <class F, class R> void check(const char *name, F f, R reference, double bound, uint64_t stride) {
  double worst = 0;
  float at = 0;
  float in[W], out[W], one[1];
  const uint32_t special[] = {0, 0x80000000, 1, 0x80000001, 0x7f800000, 0xff800000, 0x7fc00000, 0x3f800000,
                              0xbf800000, 0x7f7fffff, 0xff7fffff, 0x00800000, 0x3f7fffff, 0x3f800001, 0xbf7fffff};
  uint64_t count = (uint64_t(1) << 32) / stride;
  uint64_t specials = sizeof special / sizeof *special;
  for (uint64_t i = 0; i < count + specials; i += W) {
    for (int j = 0; j < W; ++j) {
      uint64_t k = i + j;
      in[j] = from_bits(k < specials ? special[k] : uint32_t((k - specials) * stride));
    }
    store(Full<W>{}, out, f(load(Full<W>{}, in)));
    for (int j = 0; j < W; ++j) {
      double e = ulp_error(out[j], reference((double)in[j]));
      if (e > worst) worst = e, at = in[j];
    }
    if (i % (1024 * W) == 0) {
      store(Full<1>{}, one, f(load(Full<1>{}, in)));
      if (std::memcmp(one, out, 4) != 0 && !(std::isnan(one[0]) && std::isnan(out[0]))) {
        std::printf("FAIL %s: one lane gives %a, a vector %a at %a\n", name, one[0], out[0], in[0]);
        ++failures;
      }
    }
  }
  report(name, worst, at, 0, bound);
}

template <class F, class R> void check2(const char *name, F f, R reference, double bound, uint64_t stride) {
  const float special[] = {0.0f, -0.0f, 1.0f, -1.0f, 2.0f, -2.0f, 3.0f, -3.0f, 0.5f, -0.5f, INFINITY, -INFINITY, NAN, 1e-45f, 1e30f, -1e30f};
  double worst = 0;
  float at = 0, at2 = 0, a[W], b[W], out[W];
  uint64_t count = (uint64_t(1) << 32) / stride, state = 1;
  for (uint64_t i = 0; i < count + 256; i += W) {
    for (int j = 0; j < W; ++j) {
      uint64_t k = i + j;
      state = state * 6364136223846793005u + 1442695040888963407u;
      if (k < 256) {
        a[j] = special[k / 16], b[j] = special[k % 16];
      } else { // exponents of both near 1 in every second pair
        uint32_t x = uint32_t(state >> 32), y = uint32_t(state >> 8);
        if (k & 1) x = (x & 0x87ffffff) | 0x3c000000, y = (y & 0x87ffffff) | 0x3c000000;
        a[j] = from_bits(x), b[j] = from_bits(y);
      }
    }
    store(Full<W>{}, out, f(load(Full<W>{}, a), load(Full<W>{}, b)));
    for (int j = 0; j < W; ++j) {
      double e = ulp_error(out[j], reference((double)a[j], (double)b[j]));
      if (e > worst) worst = e, at = a[j], at2 = b[j];
    }
  }
  report(name, worst, at, at2, bound);
}

double ulp_error_f64(double got, long double want) {
  const double rounded = (double)want;
  if (std::isnan(rounded)) return std::isnan(got) ? 0 : 1e30;
  if (std::isinf(rounded) || rounded == 0) return got == rounded && std::signbit(got) == std::signbit(rounded) ? 0 : 1e30;
  int exponent;
  std::frexp(rounded, &exponent);
  return (double)(std::fabs((long double)got - want) / std::ldexp(1.0L, (exponent < -1021 ? -1021 : exponent) - 53));
}

// f64 against long double, where that is wider.
template <class F, class R> void check_f64(const char *name, F f, R reference, double low, double high, double bound) {
  if (sizeof(long double) == sizeof(double) || __LDBL_MANT_DIG__ < 64) return;
  double worst = 0, at = 0, in[W], out[W];
  const double special[] = {0.0, -0.0, INFINITY, -INFINITY, NAN, 5e-324, -5e-324, 1.7976931348623157e308, -1.0, 1.0};
  for (int i = 0; i < 200000; i += W) {
    for (int j = 0; j < W; ++j) {
      int k = i + j;
      in[j] = k < 10 ? special[k] : low + (high - low) * std::fmod(k * 0.6180339887498949, 1.0);
      if (k % 4 == 3) in[j] = std::ldexp(in[j], -(k % 60));
    }
    store(Full<W>{}, out, f(load(Full<W>{}, in)));
    for (int j = 0; j < W; ++j) {
      const double e = ulp_error_f64(out[j], reference((long double)in[j]));
      if (!(e <= worst)) worst = e, at = in[j];
    }
  }
  std::printf("f64 ");
  report(name, worst, at, 0, bound);
}

// Of pairs, of all sizes, most of them near each other.
template <class F, class R> void check2_f64(const char *name, F f, R reference, double bound) {
  if (sizeof(long double) == sizeof(double) || __LDBL_MANT_DIG__ < 64) return;
  const double special[] = {0.0, -0.0, 1.0, -1.0, 2.5, -2.5, INFINITY, -INFINITY, NAN, 5e-324, -5e-324, 1.7976931348623157e308, 1e300, -1e300, 1e-300, 3.0};
  double worst = 0, at = 0, at2 = 0, a[W], b[W], out[W];
  uint64_t state = 1;
  for (int i = 0; i < 400000; i += W) {
    for (int j = 0; j < W; ++j) {
      const int k = i + j;
      state = state * 6364136223846793005u + 1442695040888963407u;
      const double u = (double)(int64_t)state * 0x1p-63, v = (double)(int64_t)(state * 0x9e3779b97f4a7c15u) * 0x1p-63;
      a[j] = k < 256 ? special[k / 16] : u * std::ldexp(1.0, k % 5 == 0 ? k % 1000 - 500 : 0);
      b[j] = k < 256 ? special[k % 16] : v * std::ldexp(1.0, k % 5 == 0 ? k % 977 - 480 : 0);
    }
    store(Full<W>{}, out, f(load(Full<W>{}, a), load(Full<W>{}, b)));
    for (int j = 0; j < W; ++j) {
      const double e = ulp_error_f64(out[j], reference((long double)a[j], (long double)b[j]));
      if (!(e <= worst)) worst = e, at = a[j], at2 = b[j];
    }
  }
  std::printf("f64 ");
  report(name, worst, at, at2, bound);
}

// libm has no erfinv: Newton's method on libm's erfc.
double erfinv_reference(double x) {
  double a = std::fabs(x);
  if (!(a <= 1)) return NAN;
  if (a == 1) return std::copysign(INFINITY, x);
  double y = a < 0.9 ? a : std::sqrt(-std::log(1 - a));
  for (int i = 0; i < 40; ++i) {
    double step = (a < 0.5 ? std::erf(y) - a : (1 - a) - std::erfc(y)) * 0.88622692545275801365 * std::exp(y * y);
    y -= step / (1 + y * step);
    if (std::fabs(step) < 1e-15 * y) break;
  }
  return std::copysign(y, x);
}

} // namespace

#define CHECK(NAME, REFERENCE, BOUND) check(#NAME, [](auto x) { return NAME(x); }, [](double v) { return REFERENCE; }, BOUND, stride)

int main(int argc, char **argv) {
  uint64_t stride = argc > 1 ? std::strtoull(argv[1], nullptr, 10) : 4999;
  CHECK(exp, std::exp(v), 1.1);
  CHECK(exp2, std::exp2(v), 1.1);
  CHECK(expm1, std::expm1(v), 1.7);
  CHECK(log, std::log(v), 1.2);
  CHECK(log2, std::log2(v), 1.8);
  CHECK(log10, std::log10(v), 0.6);
  CHECK(log1p, std::log1p(v), 1.5);
  CHECK(sin, std::sin(v), 1.6);
  CHECK(cos, std::cos(v), 1.6);
  CHECK(tan, std::tan(v), 1.5);
  CHECK(asin, std::asin(v), 0.6);
  CHECK(acos, std::acos(v), 0.6);
  CHECK(atan, std::atan(v), 0.6);
  CHECK(sinh, std::sinh(v), 0.6);
  CHECK(cosh, std::cosh(v), 0.6);
  CHECK(tanh, std::tanh(v), 1.4);
  CHECK(asinh, std::asinh(v), 0.6);
  CHECK(acosh, std::acosh(v), 0.6);
  CHECK(atanh, std::atanh(v), 0.6);
  CHECK(erf, std::erf(v), 1.4);
  CHECK(erfc, std::erfc(v), 0.6);
  CHECK(erfinv, erfinv_reference(v), 0.8);
  // Below -89 the sum that is divided by overflows.
  CHECK(sigmoid, v < -89 ? 0 : 1 / (1 + std::exp(-v)), 2.5);
  CHECK(silu, v < -89 ? (std::isinf(v) ? NAN : -0.0) : v / (1 + std::exp(-v)), 2.5);
  check("exp_of_weight", [](auto x) { return detail::exp_of_weight(-abs(x)); },
        [](double v) { return std::fabs(v) > 87.3 ? 0 : std::exp(-std::fabs(v)); }, 1.1, stride);
  CHECK(softplus, std::isnan(v) ? v : std::fmax(v, 0) + std::log1p(std::exp(-std::fabs(v))), 2.5);
  check2("pow", [](auto x, auto y) { return pow(x, y); }, [](double x, double y) { return std::pow(x, y); }, 0.6, stride);
  check2("atan2", [](auto x, auto y) { return atan2(x, y); }, [](double x, double y) { return std::atan2(x, y); }, 0.6, stride);
  check2("hypot", [](auto x, auto y) { return hypot(x, y); }, [](double x, double y) { return std::hypot(x, y); }, 0.6, stride);
  check_f64("exp", [](auto x) { return exp(x); }, [](long double v) { return std::exp(v); }, -750, 720, 1.5);
  check_f64("expm1", [](auto x) { return expm1(x); }, [](long double v) { return std::expm1(v); }, -50, 720, 2);
  check_f64("log", [](auto x) { return log(x); }, [](long double v) { return std::log(v); }, 0, 5, 1.5);
  check_f64("log1p", [](auto x) { return log1p(x); }, [](long double v) { return std::log1p(v); }, -1, 5, 2);
  check_f64("exp2", [](auto x) { return exp2(x); }, [](long double v) { return std::exp2(v); }, -1080, 1030, 1.5);
  check_f64("log2", [](auto x) { return log2(x); }, [](long double v) { return std::log2(v); }, 0, 5, 2);
  check_f64("sin", [](auto x) { return sin(x); }, [](long double v) { return std::sin(v); }, -2e6, 2e6, 1);
  check_f64("cos", [](auto x) { return cos(x); }, [](long double v) { return std::cos(v); }, -2e6, 2e6, 1);
  check_f64("tan", [](auto x) { return tan(x); }, [](long double v) { return std::tan(v); }, -2e6, 2e6, 2.5);
  check_f64("asin", [](auto x) { return asin(x); }, [](long double v) { return std::asin(v); }, -1.1, 1.1, 2.5);
  check_f64("acos", [](auto x) { return acos(x); }, [](long double v) { return std::acos(v); }, -1.1, 1.1, 2.5);
  check_f64("atan", [](auto x) { return atan(x); }, [](long double v) { return std::atan(v); }, -40, 40, 2);
  check_f64("sinh", [](auto x) { return sinh(x); }, [](long double v) { return std::sinh(v); }, -720, 720, 3);
  check_f64("cosh", [](auto x) { return cosh(x); }, [](long double v) { return std::cosh(v); }, -720, 720, 2);
  check_f64("asinh", [](auto x) { return asinh(x); }, [](long double v) { return std::asinh(v); }, -1e9, 1e9, 2);
  check_f64("acosh", [](auto x) { return acosh(x); }, [](long double v) { return std::acosh(v); }, 0.9, 1e9, 2.5);
  check_f64("acosh near 1", [](auto x) { return acosh(x); }, [](long double v) { return std::acosh(v); }, 0.99, 3, 2.5);
  check_f64("atanh", [](auto x) { return atanh(x); }, [](long double v) { return std::atanh(v); }, -1.1, 1.1, 2);
  check2_f64("atan2", [](auto x, auto y) { return atan2(x, y); }, [](long double x, long double y) { return std::atan2(x, y); }, 2);
  check2_f64("hypot", [](auto x, auto y) { return hypot(x, y); }, [](long double x, long double y) { return std::hypot(x, y); }, 1.5);
  check_f64("tanh", [](auto x) { return tanh(x); }, [](long double v) { return std::tanh(v); }, -20, 20, 2.5);
  check_f64("sigmoid", [](auto x) { return sigmoid(x); }, [](long double v) { return 1 / (1 + std::exp(-v)); }, -700, 40, 2.5);
  check_f64("erfinv", [](auto x) { return erfinv(x); }, [](long double v) { return (long double)erfinv_reference((double)v); }, -1, 1, 4);
  return failures != 0;
}
