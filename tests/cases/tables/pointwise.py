"""Functions of elements: of one, two and three operands, in each type, with the ends of each type among the values."""

from elements import TYPES

ALL = ("f64", "f32", "f16", "bf16", "i64", "i32", "i16", "i8", "u8", "bool")

# Defined on all numbers, or NaN where they are not.
UNARY = ["abs", "neg", "sign", "sgn", "signbit", "positive", "square", "reciprocal", "rsqrt", "sqrt", "exp", "exp2", "expm1", "log", "log2", "log10", "log1p", "sin", "cos", "tan", "sinh", "cosh", "tanh", "asinh", "acosh", "atanh", "asin", "acos", "atan", "erf", "erfc", "erfinv", "lgamma", "digamma", "sigmoid", "logit", "ceil", "floor", "round", "trunc", "frac", "isnan", "isinf", "isfinite", "isposinf", "isneginf", "isreal", "logical_not", "bitwise_not", "deg2rad", "rad2deg", "sinc", "relu", "i0", "nan_to_num", "conj", "real", "clone", "zeros_like", "ones_like"]
SPECIAL = ["entr", "ndtr", "ndtri", "log_ndtr", "erfcx", "i0e", "i1", "i1e", "bessel_j0", "bessel_j1", "bessel_y0", "bessel_y1", "modified_bessel_i0", "modified_bessel_i1", "modified_bessel_k0", "modified_bessel_k1", "scaled_modified_bessel_k0", "scaled_modified_bessel_k1", "spherical_bessel_j0", "psi", "gammaln", "expit", "exp2", "expm1", "log1p", "round", "sinc", "xlog1py"]


def unary(t):
    t.bind(x=t.rand(37), e=t.special(), p=t.rand(3, 5, low=0.0, high=1.0), z=t.rand(0, 3), s=t.rand())
    for name in UNARY:
        t(f"torch.{name}(x), torch.{name}(e)")
    t("torch.polygamma(1, p + 0.5)", "torch.polygamma(2, p + 0.5)", "torch.mvlgamma(p + 4, 2)")
    for name in SPECIAL:
        t(f"torch.special.{name}(x), torch.special.{name}(p)")
    for name in ("ndtr", "log_ndtr", "entr", "i0e", "i1e", "erfcx", "ndtri"):
        t(f"torch.special.{name}(e)")
    # PyTorch's own is good to six digits only left of -2.
    t("torch.special.airy_ai(x.abs()), torch.special.airy_ai(-p)")
    t(
        "torch.asin(p), torch.acos(p), torch.atanh(p), torch.erfinv(p), torch.logit(p), torch.logit(p, eps=0.1)",
        "torch.sin(z), torch.abs(z), torch.exp(s), torch.neg(s), torch.round(s)",
        "torch.round(x, decimals=1), torch.round(x * 10, decimals=-1)",
        "torch.frexp(x)",
        "torch.sin(x[::2]), torch.exp(p.t()), torch.floor(p[:, ::2]), torch.neg(p.t()[1:, 1])",
        "torch.nan_to_num(e, nan=1.5, posinf=2.0, neginf=-3.0)",
        "torch.clamp(x, -1, 1)",
        "torch.clamp(e, -1, 1)",
        "torch.clamp(x, min=0.5)",
        "torch.clamp(x, max=1)",
        "torch.clamp(x, 2, -2)",
        "torch.pow(x, 2), torch.pow(x, 3), torch.pow(p, 0.5), torch.pow(p, -2), torch.pow(2, x), torch.pow(x, 0)",
        "torch.pow(e, 2), torch.pow(e, 0.5), torch.pow(e, -1)",
        "torch.pow(x, -1.5)",
        "torch.isin(x, x[3:9]), torch.isin(x, x[3:9], invert=True)",
        "torch.heaviside(x, s)",
        "torch.bitwise_not(x), ~x",
        "torch.threshold(x, 0.5, 7)",
    )


BINARY = ["add", "sub", "mul", "div", "true_divide", "remainder", "fmod", "maximum", "minimum", "fmax", "fmin", "atan2", "hypot", "copysign", "nextafter", "pow", "logaddexp", "logaddexp2", "xlogy", "floor_divide", "eq", "ne", "lt", "le", "gt", "ge", "logical_and", "logical_or", "logical_xor", "bitwise_and", "bitwise_or", "bitwise_xor", "bitwise_left_shift", "bitwise_right_shift", "gcd", "lcm", "heaviside", "float_power", "isclose", "ldexp", "rsub"]
SPECIAL_BINARY = ["zeta", "xlog1py", "gammainc", "gammaincc", "chebyshev_polynomial_t", "hermite_polynomial_h", "legendre_polynomial_p", "laguerre_polynomial_l"]


def binary(t):
    a, b = t.rand(5, 7, low=-9, high=9), t.rand(5, 7, low=-4, high=4)
    positive = t.rand(5, 7, low=1, high=4)
    t.bind(
        a=a,
        b=b,
        c=positive,
        row=t.rand(7, low=1, high=5),
        column=t.rand(5, 1, low=1, high=5),
        s=t.rand(low=1.0, high=3.0),
        e=t.special(),
        z=t.rand(0, 7),
        one=t.rand(1, 1, low=1, high=3),
        n=-positive if t.is_float else positive,
    )
    for name in BINARY:
        shift = "shift" in name
        right = "c" if name in ("remainder", "fmod", "floor_divide") or shift else "b"
        left = "a.abs()" if name == "pow" else "a"
        t(f"torch.{name}({left}, {right}), torch.{name}({left}, s), torch.{name}(c, row), torch.{name}(column, c)")
        # Of numbers that are far apart, PyTorch's vector forms of the remainders give NaN.
        if (
            not shift
            and name not in ("remainder", "fmod")
            and not (name in ("floor_divide", "pow", "gcd", "lcm") and not t.is_float)
        ):
            t(f"torch.{name}(e, e.flip(0)), torch.{name}(e[:, None], e)")
        t(f"torch.{name}(z, row), torch.{name}(one, z)")
    for name in ("remainder", "fmod", "floor_divide"):
        t(f"torch.{name}(a, n), torch.{name}(a, 3), torch.{name}(a, 2.5), torch.{name}(a, -3)")
        t(f"torch.{name}(a[::2], c[::2]), torch.{name}(a.t(), c.t())")
    for mode in ("'floor'", "'trunc'", "None"):
        t(
            f"torch.div(a, c, rounding_mode={mode}), torch.div(a, n, rounding_mode={mode}), torch.div(a, 3, rounding_mode={mode})"
        )
    t(
        "torch.remainder(7, c), 7 - a, 7 / c, 2 ** c, a % 3, a // 2, a << 1, a >> 1, a & 6, a | 1, a ^ 3",
        "7 - a, 7 / c, 1 + a, 2 * a, a - 1.5, a * 0.1",
        "a // 2, a % 3, 7 // c, 7 % c",
        "a << 1, a >> 1",
        "a & 6, a | 1, a ^ 3",
        "torch.add(a, b, alpha=2), torch.sub(a, b, alpha=3), torch.rsub(a, b, alpha=2)",
        "torch.add(a.t(), b.t()[::2].repeat_interleave(2, 0)[:7]), torch.mul(a[:, ::3], b[:, 1::3][:, :1])",
        "e + e, e * e, e - 1, e * 2",
        "torch.maximum(a, b.t().t()), torch.minimum(a[1:], b[:-1])",
        "torch.pow(a, 2), torch.pow(a, c), torch.pow(s, c)",
        "torch.lerp(a, b, 0.3), torch.lerp(a, b, c / 4), torch.lerp(a, b, s)",
        "torch.addcmul(a, b, c, value=2), torch.addcdiv(a, b, c, value=0.5), torch.addcmul(a, row, column)",
        "torch.where(a > b, a, b), torch.where(a > 0, a, 0), torch.where(a > 0, 1.5, a), torch.where(row > 2, a, column)",
        "torch.where(a > b, a, s), torch.where(z > 0, z, z)",
        "torch.clamp(a, b, c), torch.clamp(a, min=b), torch.clamp(a, max=row)",
        "torch.isclose(a, b, rtol=0.5, atol=0.5), torch.isclose(e, e, equal_nan=True)",
        "torch.dist(a, b), torch.dist(a, b, 1), torch.dist(a, b, float('inf'))",
        "torch.copysign(a, -1.0), torch.copysign(e, -e)",
    )
    for name in SPECIAL_BINARY:
        second = "2" if "polynomial" in name else "c"
        t(f"torch.special.{name}(c, {second})")
    t("torch.special.zeta(c + 1.5, c), torch.special.zeta(2.5, c)", "torch.mvlgamma(c + 3, 3)")


def promotion(t):
    """Each pair of types, as tensors with dimensions, without, and as Python numbers."""
    every = {name: t.rand(3, low=1, high=6, dtype=dtype) for name, dtype in TYPES.items()}
    scalars = {f"s_{name}": t.rand(low=1, high=6, dtype=dtype) for name, dtype in TYPES.items()}
    t.bind(**{f"v_{name}": x for name, x in every.items()}, **scalars)
    names = list(every)
    for i, left in enumerate(names):
        for right in names[i:]:
            t(f"v_{left} + v_{right}, v_{left} * s_{right}, s_{left} * v_{right}, v_{left} == v_{right}")
            t(
                f"v_{left} / v_{right}, torch.maximum(v_{left}, s_{right}), torch.where(v_{left} > 2, v_{left}, v_{right})"
            )
        t(f"v_{left} + 1, v_{left} + 1.5, v_{left} * True, s_{left} + 1, s_{left} * 1.5, v_{left} / 2, v_{left} > 2.5")
        t(f"torch.atan2(v_{left}, s_i64), torch.exp(v_{left}), torch.pow(v_{left}, 2), torch.pow(2.0, v_{left})")
        t(f"torch.cat([v_{left}, v_i8]), torch.cat([v_{left}, v_f16, v_bool]), torch.stack([s_{left}, s_f32])")
        t(f"torch.sum(v_{left}), torch.mean(v_{left}.float()), torch.prod(v_{left}), torch.cumsum(v_{left}, 0)")


def casts(t):
    """From a type to every other one. What PyTorch leaves to the processor is left out: what does not fit integers."""
    t.bind(
        x=t.rand(37, low=-20, high=20) if t.type != "u8" else t.rand(37, low=0, high=20),
        p=t.rand(5, 7, low=0, high=100),
        e=t.special(),
        z=t.rand(0, 2),
        s=t.rand(),
    )
    for name, dtype in TYPES.items():
        t(f"p.to({name}), p.t().to({name}), z.to({name})")
        if name != "u8" or not t.is_float:
            t(f"x.to({name}), x[::3].to({name}), s.to({name})")
        if dtype.is_floating_point or dtype == TYPES["bool"] or not t.is_float:
            t(f"e.to({name}), e.to({name}) == 0")
        t(f"torch.zeros_like(x, dtype={name}), torch.full_like(x, 3, dtype={name}), torch.ones(3, dtype={name})")
    t(
        "x.to(torch.float32).to(x.dtype), x.double().float().half(), x.type_as(p), x.bool(), x.long(), x.int(), p.byte()",
        "x.to(p), x.to(f32, copy=True), x.float().contiguous()",
        "p.view(p.dtype)",
    )


FAMILIES = {
    "unary": (ALL, unary),
    "binary": (ALL, binary),
    "promotion": (("f32",), promotion),
    "casts": (ALL, casts),
}
