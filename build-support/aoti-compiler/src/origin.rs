//! Places in the user's program, which nodes, kernels and diagnostics name.

/// The place in the user's program that a node comes from.
#[derive(Clone, PartialEq, Eq, Hash, Default, Debug)]
pub struct Origin {
    /// Operator and node name in the program, such as `aten.linear.default` of `linear_1`; may be empty.
    pub node: String,
    /// Innermost line of the user's code, such as `model.py:12 in forward: return self.fc(x)`; may be empty.
    pub source: String,
    /// Path of the module, such as `layers.0.mlp`; may be empty.
    pub module: String,
}

impl Origin {
    /// The line of the user's code, or the node where that is not known; may be empty.
    pub fn place(&self) -> &str {
        if self.source.is_empty() { &self.node } else { &self.source }
    }
}

/// A message with a place in the user's program; either may be empty.
pub fn placed(message: &str, place: &str) -> String {
    let parts = [message, place].into_iter().filter(|part| !part.is_empty());
    parts.collect::<Vec<_>>().join(", at ")
}
