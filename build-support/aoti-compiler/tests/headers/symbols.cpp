// A kernel that uses functions of every header: the test looks at the symbols of its object file.
#include "aoti/special.h"

using namespace aoti;

template <class L> static void body(L lanes, const float *x, const f16 *h, double *y) {
  auto v = load(lanes, x) + load(lanes, h);
  store(lanes, y, cast<f64>(special::airy_ai(special::digamma(pow(tanh(v), 2.0f)))) + special::bessel_j0(load(lanes, y)));
}

extern "C" void kernel(const float *x, const f16 *h, double *y, int n) {
  body(Full<AOTI_LANES>{}, x, h, y);
  body(Tail<AOTI_LANES>{n}, x, h, y);
}
