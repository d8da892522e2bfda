//! Operators that no rule serves whatever their arguments are, with the reason. A compiled model has no storage that
//! tensors could exchange.

/// Why an operator is refused whatever its arguments are.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Refusal {
    /// What is in the way.
    pub reason: &'static str,
    /// What to do instead.
    pub help: &'static str,
}

const WINDOWS: Refusal = Refusal {
    reason: "its windows are drawn at random",
    help: "pool with fixed windows when the model is exported",
};

const STORAGE: Refusal =
    Refusal { reason: "it exchanges a tensor's storage", help: "copy into the tensor instead: `x.copy_(y)`" };

const BATCHED: Refusal = Refusal {
    reason: "it marks where `torch.vmap` begins and ends, and what lies between says nothing of the batch",
    help: "export with `torch.export.export(…).run_decompositions({})`, which resolves `vmap`",
};

/// The refused overloads; `*` stands for every functional overload.
pub(crate) const REFUSED: &[(&str, Refusal)] = &[
    ("aten.fractional_max_pool2d.*", WINDOWS),
    ("aten.fractional_max_pool3d.*", WINDOWS),
    ("aten.set.*", STORAGE),
    ("torch._functorch.*", BATCHED),
];
