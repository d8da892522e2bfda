//! Operators that no rule can ever serve, with the reason. A compiled model has no generator of random numbers,
//! and no storage that tensors could exchange.

/// Why an operator is refused whatever its arguments are.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Refusal {
    /// What is in the way.
    pub reason: &'static str,
    /// What to do instead.
    pub help: &'static str,
}

const RANDOM: Refusal = Refusal {
    reason: "it draws random numbers, which a compiled model does not",
    help: "pass the numbers in as an input of the model",
};

const STORAGE: Refusal =
    Refusal { reason: "it exchanges a tensor's storage", help: "copy into the tensor instead: `x.copy_(y)`" };

/// The refused overloads; `*` stands for every functional overload.
pub(super) const REFUSED: &[(&str, Refusal)] = &[
    ("aten.bernoulli.*", RANDOM),
    ("aten.cauchy.*", RANDOM),
    ("aten.exponential.*", RANDOM),
    ("aten.fractional_max_pool2d.*", RANDOM),
    ("aten.fractional_max_pool3d.*", RANDOM),
    ("aten.geometric.*", RANDOM),
    ("aten.log_normal.*", RANDOM),
    ("aten.multinomial.*", RANDOM),
    ("aten.normal.*", RANDOM),
    ("aten.poisson.*", RANDOM),
    ("aten.rand.*", RANDOM),
    ("aten.rand_like.*", RANDOM),
    ("aten.randint.*", RANDOM),
    ("aten.randint_like.*", RANDOM),
    ("aten.randn.*", RANDOM),
    ("aten.randn_like.*", RANDOM),
    ("aten.random.*", RANDOM),
    ("aten.randperm.*", RANDOM),
    ("aten.uniform.*", RANDOM),
    ("aten.set.*", STORAGE),
];
