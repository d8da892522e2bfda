// Special functions of torch.special, for generated CPU kernels: the umbrella of the special_*.h headers.
//
// Namespace aoti::special. Each function takes scalars f32 or f64, or Vec<f32, W> or Vec<f64, W> lane by lane, all
// arguments of one type, and has PyTorch's values for NaN, infinities, zeros and poles. Work is done in f64.
//   gamma:       lgamma digamma polygamma(n, x) zeta(x, q) igamma(a, x) igammac(a, x)
//   normal:      ndtr ndtri log_ndtr erfcx entr sinc xlogy(x, y) xlog1py(x, y)
//   bessel:      i0 i0e i1 i1e bessel_j0 bessel_j1 bessel_y0 bessel_y1 spherical_bessel_j0 airy_ai
//                modified_bessel_i0 modified_bessel_i1 modified_bessel_k0 modified_bessel_k1
//                scaled_modified_bessel_k0 scaled_modified_bessel_k1
//   polynomials: chebyshev_polynomial_{t,u,v,w}(x, n) shifted_chebyshev_polynomial_{t,u,v,w}(x, n)
//                hermite_polynomial_h(x, n) hermite_polynomial_he(x, n) laguerre_polynomial_l(x, n)
//                legendre_polynomial_p(x, n); n is truncated to an integer
//   elementary:  nextafter(x, y) heaviside(x, y) logaddexp(x, y) logaddexp2(x, y) ldexp(x, n)
//                frexp(x, Vec<i32, W> &exponent) -> mantissa (scalar: i32 &exponent)
//                gcd(a, b) lcm(a, b) on integer scalars and vectors
#pragma once

#include "special_bessel.h"
#include "special_gamma.h"
#include "special_normal.h"
#include "special_polynomial.h"
