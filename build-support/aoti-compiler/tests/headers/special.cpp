// Compares special.h with the f64 values in special_values.inc: NaN and infinities exactly, the rest to a relative
// error of 2e-12. Every case runs as a scalar and as a lane.
#include "aoti/special.h"

#include <cmath>
#include <cstdint>
#include <cstdio>
#include <cstring>

using namespace aoti;

namespace {

int failures = 0;

bool close(double got, double want, double relative, double absolute) {
  if (std::isnan(want)) return std::isnan(got);
  if (std::isinf(want)) return got == want;
  return std::fabs(got - want) <= relative * std::fabs(want) + absolute;
}

void verify(const char *name, double x, double y, double got, double want) {
  if (close(got, want, 2e-12, 1e-15)) return;
  std::printf("FAIL %s(%g, %g) = %.17g, want %.17g\n", name, x, y, got, want);
  ++failures;
}

} // namespace

struct Case {
  const char *name;
  double (*scalar)(double, double);
  double (*lanes)(double, double);
  double x, y, want;
};

#define F1(NAME)                                                                                        \
  static double scalar_##NAME(double x, double) { return special::NAME(x); }                            \
  static double lanes_##NAME(double x, double) { return lane(special::NAME(splat<4>(x)), 3); }
#define F2(NAME)                                                                                        \
  static double scalar_##NAME(double x, double y) { return special::NAME(x, y); }                       \
  static double lanes_##NAME(double x, double y) { return lane(special::NAME(splat<4>(x), splat<4>(y)), 3); }
F1(lgamma)
F1(digamma)
F1(ndtr)
F1(ndtri)
F1(log_ndtr)
F1(erfcx)
F1(entr)
F1(sinc)
F1(i0)
F1(i0e)
F1(i1)
F1(i1e)
F1(bessel_j0)
F1(bessel_j1)
F1(bessel_y0)
F1(bessel_y1)
F1(spherical_bessel_j0)
F1(airy_ai)
F1(modified_bessel_i0)
F1(modified_bessel_i1)
F1(modified_bessel_k0)
F1(modified_bessel_k1)
F1(scaled_modified_bessel_k0)
F1(scaled_modified_bessel_k1)
F2(xlogy)
F2(xlog1py)
F2(logaddexp)
F2(logaddexp2)
F2(nextafter)
F2(heaviside)
F2(ldexp)
F2(zeta)
F2(igamma)
F2(igammac)
F2(polygamma)
F2(chebyshev_polynomial_t)
F2(chebyshev_polynomial_u)
F2(chebyshev_polynomial_v)
F2(chebyshev_polynomial_w)
F2(shifted_chebyshev_polynomial_t)
F2(shifted_chebyshev_polynomial_u)
F2(shifted_chebyshev_polynomial_v)
F2(shifted_chebyshev_polynomial_w)
F2(hermite_polynomial_h)
F2(hermite_polynomial_he)
F2(laguerre_polynomial_l)
F2(legendre_polynomial_p)

#define V1(NAME, X, WANT) {#NAME, scalar_##NAME, lanes_##NAME, X, 0, WANT},
#define V2(NAME, X, Y, WANT) {#NAME, scalar_##NAME, lanes_##NAME, X, Y, WANT},
static const Case cases[] = {
#include "special_values.inc"
};

static void values() {
  for (const Case &c : cases) {
    verify(c.name, c.x, c.y, c.scalar(c.x, c.y), c.want);
    verify(c.name, c.x, c.y, c.lanes(c.x, c.y), c.want);
  }
}

static void integers() {
  verify("gcd", 12, -18, special::gcd(i64(12), i64(-18)), 6);
  verify("gcd", 0, 0, special::gcd(i32(0), i32(0)), 0);
  verify("gcd", 12, 18, special::gcd(u16(12), u16(18)), 6);
  verify("gcd", 3e9, 2e9, special::gcd(u32(3000000000), u32(2000000000)), 1e9);
  verify("gcd", 1, 1, special::gcd(~u64(0), u64(5)) == 5, 1);
  verify("lcm", -4, 6, special::lcm(i32(-4), i32(6)), 12);
  verify("lcm", 0, 6, lane(special::lcm(splat<4>(i64(0)), splat<4>(i64(6))), 1), 0);
  i32 exponent = 0;
  verify("frexp", 10, 0, special::frexp(10.0, exponent), 0.625);
  verify("frexp exponent", 10, 0, exponent, 4);
  Vec<i32, 4> exponents;
  verify("frexp", -0.75f, 0, lane(special::frexp(splat<4>(-0.75f), exponents), 2), -0.75);
  verify("frexp exponent", -0.75, 0, lane(exponents, 2), 0);
  verify("lgamma f32", 3.5, 0, special::lgamma(3.5f), double(float(std::lgamma(3.5))));
}

// Sums with terms below zero, of which there may be more than anybody waits for.
static void many_terms() {
  for (double x = 2; x <= 8; ++x) {
    double sum = special::zeta(x, 0.75);
    for (double a = -0.25; a >= -100.25; --a) sum += std::pow(a, -x);
    verify("zeta", x, -100.25, special::zeta(x, -100.25), sum);
  }
  const double square = M_PI * M_PI / (std::sin(M_PI * 0.5) * std::sin(M_PI * 0.5));
  verify("zeta", 2, -1e15 - 0.5, special::zeta(2.0, -1e15 - 0.5), square);
  verify("zeta", 3, -1e15 - 0.5, special::zeta(3.0, -1e15 - 0.5), 0);
}

// Functions of f32 on vectors whose lanes go different ways, beside those of f64: over all bit patterns of a stride.
template <class F, class G> static void of_f32(const char *name, F lanes, G reference, double absolute) {
  constexpr int W = 16;
  const float special[] = {0.0f, -0.0f, 1.0f, 2.0f, -1.0f, -2.5f, INFINITY, -INFINITY, NAN, 1e-45f, -1e-45f, 20.0f, 0.5f, 3e38f, 1e-30f, 12.0f};
  for (uint64_t begin = 0; begin < uint64_t(1) << 32; begin += W * 99991) {
    float in[W], out[W];
    for (int j = 0; j < W; ++j) {
      const uint32_t bits = uint32_t(begin + j * 99991);
      if (begin == 0) in[j] = special[j]; else std::memcpy(&in[j], &bits, 4);
    }
    store(Full<W>{}, out, lanes(load(Full<W>{}, in)));
    for (int j = 0; j < W; ++j) {
      const float want = float(reference(double(in[j])));
      if (close(out[j], want, 4e-7, absolute)) continue;
      std::printf("FAIL %s(%a) = %.9g, want %.9g\n", name, in[j], out[j], want);
      ++failures;
      return;
    }
  }
}
#define OF_F32(NAME, ABSOLUTE)                                                                                      \
  of_f32(#NAME, [](auto x) { return special::NAME(x); }, [](double x) { return special::NAME(x); }, ABSOLUTE)

int main() {
  OF_F32(lgamma, 1e-13);
  OF_F32(digamma, 1e-13);
  OF_F32(ndtr, 2e-45);
  OF_F32(ndtri, 1e-8);
  OF_F32(entr, 2e-45);
  OF_F32(i0, 0);
  OF_F32(i0e, 0);
  OF_F32(i1, 2e-45);
  OF_F32(i1e, 2e-45);
  OF_F32(spherical_bessel_j0, 1e-45);
  values();
  integers();
  many_terms();
  return failures != 0;
}
