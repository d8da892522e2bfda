// Our own elementary functions, which GPUs use, against libm's of 64-bit mantissas: no error beyond what scalar.h says. And how
// an operand of a warpgroup is described.
#define AOTI_EMULATED 32
#include "aoti/gpu/mma.h"
#include "aoti/gpu/simt.h"
#include "aoti/special.h"
#include <math.h>
#include <stdio.h>

using namespace aoti;

static u64 state = 1;
static double uniform(double low, double high) {
  state = state * 6364136223846793005u + 1442695040888963407u;
  return low + (high - low) * double(state >> 11) * 0x1p-53;
}
static double wide() { return ldexp(uniform(-1, 1), int(uniform(-60, 60))); }
static double huge() { return ldexp(uniform(-1, 1), int(uniform(20, 1000))); }

static double ulps(double got, long double exact) {
  double rounded = double(exact);
  if (got == rounded || (got != got && rounded != rounded)) return 0;
  int exponent;
  frexp(rounded, &exponent);
  return fabs(double((got - exact) / ldexpl(1, (exponent < -1021 ? -1021 : exponent) - 53)));
}

static int failures = 0;
static void report(const char *name, double worst, double at, double limit) {
  if (worst <= limit) return;
  printf("%s: %g at %.17g, must be at most %g\n", name, worst, at, limit);
  ++failures;
}

#define WITHIN(NAME, LIMIT, ARGUMENT)                      \
  do {                                                     \
    double worst = 0, at = 0;                              \
    for (int i = 0; i < 50000; ++i) {                      \
      double x = ARGUMENT, e = ulps(scalar::NAME(x), NAME##l(x)); \
      if (e > worst) worst = e, at = x;                    \
    }                                                      \
    report(#NAME, worst, at, LIMIT);                       \
  } while (0)
#define WITHIN2(NAME, LIMIT, FIRST, SECOND)                \
  do {                                                     \
    double worst = 0, at = 0;                              \
    for (int i = 0; i < 50000; ++i) {                      \
      double x = FIRST, y = SECOND, e = ulps(scalar::NAME(x, y), NAME##l(x, y)); \
      if (e > worst) worst = e, at = x;                    \
    }                                                      \
    report(#NAME, worst, at, LIMIT);                       \
  } while (0)
#define NEAR(NAME, OURS, EXACT, LIMIT, ARGUMENT)           \
  do {                                                     \
    double worst = 0, at = 0;                              \
    for (int i = 0; i < 20000; ++i) {                      \
      double x = ARGUMENT, exact = double(EXACT), e = fabs(double(OURS) - exact) / (1 + fabs(exact)); \
      if (!(e <= worst)) worst = e, at = x;                \
    }                                                      \
    report(NAME, worst, at, LIMIT);                        \
  } while (0)

static void equal(const char *name, double got, double exact) {
  if (got == exact || (got != got && exact != exact)) return;
  printf("%s is %g, must be %g\n", name, got, exact);
  ++failures;
}

// Where exponents end, and beyond.
static const double edges[] = {0.0, -0.0, 4.9e-324, -4.9e-324, 5.6e-309, -5.6e-309, 2.3e-308, -2.3e-308, 1e-200, -1e-200,
                               1e-17, -1e-17, 0.5, -0.5, 1, -1, 1.5, -1.5, 171.5, -171.5, 709.9, -709.9, 745.2, -745.2,
                               1e9 + 0.5, -1e9 - 0.5, 1e17, -1e17, 1e150, -1e150, 1.1e301, -1.1e301, 1.79e308, -1.79e308,
                               INFINITY, -INFINITY, NAN};

// Right but for the last digits; where the result is as small as numbers are, but for a few of its steps.
static void edge(const char *name, double x, double y, double got, double exact) {
  if (got == exact || (got != got && exact != exact) || fabs(got - exact) <= 4e-14 * fabs(exact) + 2e-323) return;
  printf("%s(%.17g, %.17g) is %.17g, must be %.17g\n", name, x, y, got, exact);
  ++failures;
}
#define EDGES(NAME) \
  for (double x : edges) edge(#NAME, x, 0, scalar::NAME(x), double(NAME##l(x)))
#define EDGES2(NAME)       \
  for (double x : edges)   \
    for (double y : edges) edge(#NAME, x, y, scalar::NAME(x, y), double(NAME##l(x, y)))

static void at_edges() {
  EDGES(exp);
  EDGES(exp2);
  EDGES(expm1);
  EDGES(log);
  EDGES(log1p);
  EDGES(log2);
  EDGES(log10);
  EDGES(sin);
  EDGES(cos);
  EDGES(tan);
  EDGES(asin);
  EDGES(acos);
  EDGES(atan);
  EDGES(sinh);
  EDGES(cosh);
  EDGES(asinh);
  EDGES(acosh);
  EDGES(atanh);
  EDGES(erf);
  EDGES(erfc);
  EDGES(lgamma);
  EDGES2(pow);
  EDGES2(fmod);
  EDGES2(atan2);
  EDGES2(hypot);
}

// Quotients of indices by numbers that are known, whose factors are right for numbers of 31 bits, and by others.
template <i32 D> static void divide(i32 x) {
  const i64 want = x / i64(D) - (x % i64(D) < 0);
  const Vec<i32, 2> of = splat<2, i32>(x);
  report("floor_div_by", lane(floor_div_by<D>(of), 1) != want, x, 0);
  report("remainder_by", lane(remainder_by<D>(of), 1) != x - want * D, x, 0);
  report("trunc_div", lane(trunc_div(of, splat<2, i32>(D)), 1) != x / D, x, 0);
  report("floor_div", lane(floor_div(of, splat<2, i32>(D)), 1) != want, x, 0);
}
static void divisions() {
  const i64 middles[] = {0, 1 << 16, 1000000007, 2147483647, -65537, -2147483647};
  for (i64 middle : middles)
    for (i64 own = middle - 1000; own <= middle + 1000; ++own) {
      if (own < -2147483647 - 1 || own > 2147483647) continue;
      const i32 x = i32(own);
      divide<1>(x), divide<2>(x), divide<3>(x), divide<7>(x), divide<64>(x), divide<641>(x), divide<99991>(x);
      divide<(1 << 30)>(x), divide<1073741827>(x), divide<2147483646>(x), divide<2147483647>(x);
    }
  const Vec<i32, 2> least = splat<2, i32>(-2147483647 - 1), zero = splat<2, i32>(0);
  report("by zero", lane(trunc_div(least, zero), 0) != 0 || lane(floor_div(least, zero), 0) != 0, 0, 0);
  report("by -1", lane(trunc_div(least, splat<2, i32>(-1)), 0) != lane(least, 0), 0, 0);
}

int main() {
  at_edges();
  divisions();
  WITHIN(exp, 1, uniform(-700, 700));
  WITHIN(exp2, 1.2, uniform(-1000, 1000));
  WITHIN(expm1, 2, uniform(-3, 3));
  WITHIN(log, 1, fabs(wide()));
  WITHIN(log1p, 1.5, uniform(-0.9, 3));
  WITHIN(log2, 2, fabs(wide()));
  WITHIN(log10, 2.2, fabs(wide()));
  WITHIN(sin, 1, wide());
  WITHIN(sin, 1, huge());
  WITHIN(cos, 1, wide());
  WITHIN(cos, 1, huge());
  WITHIN(tan, 2.2, uniform(-10, 10));
  WITHIN(asin, 2.5, uniform(-1, 1));
  WITHIN(acos, 2.8, uniform(-1, 1));
  WITHIN(atan, 2, wide());
  WITHIN(sinh, 3, uniform(-700, 700));
  WITHIN(cosh, 3, uniform(-700, 700));
  WITHIN(asinh, 2, wide());
  WITHIN(acosh, 2.5, 1 + fabs(wide()));
  WITHIN(atanh, 2.2, uniform(-1, 1));
  WITHIN2(pow, 2, fabs(wide()), uniform(-10, 10));
  WITHIN2(fmod, 0, wide(), uniform(-5, 5));
  WITHIN2(atan2, 2, wide(), wide());
  NEAR("erf", scalar::erf(x), erfl(x), 4e-15, uniform(-6, 6));
  NEAR("erfc", scalar::erfc(x), erfcl(x), 4e-15, uniform(-6, 26));
  NEAR("lgamma", scalar::lgamma(x), lgammal(x), 1e-14, uniform(-20, 50));
  NEAR("j0", special::bessel_j0(x), j0(x), 1e-14, uniform(0.001, 100));
  NEAR("j1", special::bessel_j1(x), j1(x), 1e-14, uniform(0.001, 100));
  NEAR("y0", special::bessel_y0(x), y0(x), 1e-14, uniform(0.001, 100));
  NEAR("y1", special::bessel_y1(x), y1(x), 1e-14, uniform(0.001, 100));
  equal("pow(-2, 3)", scalar::pow(-2, 3), -8);
  equal("pow(-2, 0.5)", scalar::pow(-2, 0.5), NAN);
  equal("pow(0, -1)", scalar::pow(0, -1), INFINITY);
  equal("pow(-0.0, -3)", scalar::pow(-0.0, -3), -INFINITY);
  equal("pow(inf, -2)", scalar::pow(INFINITY, -2), 0);
  equal("pow(-inf, 3)", scalar::pow(-INFINITY, 3), -INFINITY);
  equal("sin(inf)", scalar::sin(INFINITY), NAN);
  equal("log(0)", scalar::log(0), -INFINITY);
  equal("nextafter(1, 2)", special::nextafter(1.0, 2.0), nextafter(1.0, 2.0));
  equal("nextafter(0, -1)", special::nextafter(0.0, -1.0), nextafter(0.0, -1.0));
  // Above eighteen bits stands the number of a block in its cluster.
  for (u32 block = 0; block < 8; ++block) {
    const detail::WarpgroupOperand alone(0x2400, 8192), member(0x2400 | block << 24, 8192);
    if (alone.at(2048) == member.at(2048)) continue;
    printf("block %u of a cluster describes another operand\n", block);
    ++failures;
  }
  return failures != 0;
}
