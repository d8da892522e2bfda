//! The operators: one rule for each, in tables by family.
//!
//! A rule gets the node with the version of its operator set, and builds what it gives through the builder of core graphs, or
//! through the rule of PyTorch's operator where that is the same (`torch1`). Element types are those of the standard, which
//! promotes nothing.

mod attention;
mod attention_core;
mod axes;
mod boxes;
mod branch;
mod cast;
mod causal_convolution;
mod control;
mod coupling;
mod distinct;
mod dropout;
mod elementwise;
mod features;
mod gather;
mod image;
mod learners;
mod linear_attention;
mod logic;
mod loss;
mod matrix;
mod microsoft;
mod ngrams;
mod normalization;
mod optimizer;
mod pad;
mod quantize;
mod random;
mod recurrent;
mod reduce;
mod resize;
mod rotary;
mod scores;
mod sequence;
mod shape;
mod signal;
mod slice;
mod trees;
mod window;

use super::call::Call;
use super::value::Val;
use super::walk::Onnx;
use crate::frontend::torch::rules::RuleError;
use crate::graph::ValueId;
use indexmap::IndexMap;
use std::sync::LazyLock;

/// What a rule gives: the results of the node.
pub(super) type Rule = Result<Vec<Val>, RuleError>;
/// The body of a rule.
pub(super) type RuleFn = fn(&mut Onnx, &Call) -> Rule;

/// One operator.
pub(super) struct Operator {
    /// The set that it is of; empty for the standard's own.
    pub(super) domain: &'static str,
    pub(super) name: &'static str,
    pub(super) run: RuleFn,
}

/// Writes a family's table: `operators! { "" ; "Abs" => abs, }`, where the first text is the domain.
macro_rules! operators {
    ($domain:literal; $($name:literal => $run:expr,)*) => {
        /// The family's operators.
        pub(super) const OPERATORS: &[$crate::frontend::onnx::ops::Operator] = &[$(
            $crate::frontend::onnx::ops::Operator { domain: $domain, name: $name, run: $run },
        )*];
    };
}
use operators;

const FAMILIES: &[&[Operator]] = &[
    attention::OPERATORS,
    attention::PREVIEW,
    boxes::OPERATORS,
    branch::OPERATORS,
    cast::OPERATORS,
    causal_convolution::OPERATORS,
    control::OPERATORS,
    distinct::OPERATORS,
    dropout::OPERATORS,
    elementwise::OPERATORS,
    features::OPERATORS,
    gather::OPERATORS,
    image::OPERATORS,
    learners::OPERATORS,
    linear_attention::OPERATORS,
    logic::OPERATORS,
    loss::OPERATORS,
    matrix::OPERATORS,
    ngrams::OPERATORS,
    normalization::OPERATORS,
    optimizer::OPERATORS,
    pad::OPERATORS,
    quantize::OPERATORS,
    random::OPERATORS,
    recurrent::OPERATORS,
    reduce::OPERATORS,
    resize::OPERATORS,
    rotary::OPERATORS,
    sequence::OPERATORS,
    shape::OPERATORS,
    signal::OPERATORS,
    slice::OPERATORS,
    trees::OPERATORS,
    window::OPERATORS,
];

/// Operators that have no rule, and why.
const REFUSED: &[(&str, &str)] = &[
    ("ImageDecoder", "files of images are decoded before a model runs"),
    ("RegexFullMatch", TEXTS),
    ("StringConcat", TEXTS),
    ("StringNormalizer", TEXTS),
    ("StringSplit", TEXTS),
    ("ai.onnx.ml::CastMap", MAPS),
    ("ai.onnx.ml::CategoryMapper", "it maps texts to numbers and back; do that before a model runs"),
    ("ai.onnx.ml::DictVectorizer", MAPS),
    (
        "ai.onnx.preview.training::Gradient",
        "it asks for the derivative of the rest of the graph; export the graph of the training step instead",
    ),
    ("com.microsoft::BeamSearch", SEARCH),
    ("com.microsoft::BiasDropout", TRAINING),
    ("com.microsoft::BitmaskBiasDropout", TRAINING),
    ("com.microsoft::BitmaskDropout", TRAINING),
    ("com.microsoft::DecoderMaskedSelfAttention", OF_DEVICE),
    (
        "com.microsoft::EPContext",
        "it is what another compiler made of a part of the model; take the model from before",
    ),
    ("com.microsoft::GreedySearch", SEARCH),
    ("com.microsoft::MoEPacked", OF_DEVICE),
    ("com.microsoft::PackedAttention", PACKED),
    ("com.microsoft::PackedMultiHeadAttention", PACKED),
    ("com.microsoft::PagedAttention", OF_DEVICE),
    ("com.microsoft::QOrderedAttention", OF_DEVICE),
    ("com.microsoft::QOrderedGelu", OF_DEVICE),
    ("com.microsoft::QOrderedLayerNormalization", OF_DEVICE),
    ("com.microsoft::QOrderedLongformerAttention", OF_DEVICE),
    ("com.microsoft::QOrderedMatMul", OF_DEVICE),
    ("com.microsoft::RemovePadding", PACKED),
    ("com.microsoft::RestorePadding", PACKED),
    ("com.microsoft::Sampling", SEARCH),
    (
        "com.microsoft::Snpe",
        "it is what another compiler made of a part of the model; take the model from before",
    ),
    ("com.microsoft::Tokenizer", TEXTS),
    ("com.microsoft::WhisperBeamSearch", SEARCH),
    ("com.microsoft.nchwc::AveragePool", BLOCKS),
    ("com.microsoft.nchwc::Conv", BLOCKS),
    ("com.microsoft.nchwc::GlobalAveragePool", BLOCKS),
    ("com.microsoft.nchwc::GlobalMaxPool", BLOCKS),
    ("com.microsoft.nchwc::MaxPool", BLOCKS),
    ("com.microsoft.nchwc::ReorderInput", BLOCKS),
    ("com.microsoft.nchwc::ReorderOutput", BLOCKS),
    ("com.microsoft.nchwc::Upsample", BLOCKS),
    ("ai.onnx.ml::ZipMap", "maps are no tensors; export the model with `zipmap=False`"),
];
const TEXTS: &str = "there are no tensors of texts; split and join them before a model runs";
const SEARCH: &str =
    "it runs a decoder until it ends; compile the decoder, and write the loop around it in Rust";
const TRAINING: &str = "it is written for training; export the model for inference";
const OF_DEVICE: &str = "it is written for one execution provider of ONNX Runtime; optimise the model for processors, or not at all";
const BLOCKS: &str = "its layout is that of the machine that optimised the model; optimise up to level 2 (`ORT_ENABLE_EXTENDED`)";
const PACKED: &str = "it packs sequences without their padding for CUDA; optimise the model without packing (`use_packed_mode`)";
const MAPS: &str = "maps are no tensors; export the model without them";

static BY_NAME: LazyLock<IndexMap<(&str, &str), &Operator>> = LazyLock::new(|| {
    let all = FAMILIES.iter().chain(microsoft::FAMILIES).copied().flatten();
    all.map(|operator| ((operator.domain, operator.name), operator)).collect()
});

/// The rule of an operator.
pub(super) fn find(domain: &str, name: &str) -> Option<&'static Operator> {
    BY_NAME.get(&(domain, name)).copied()
}

/// Why an operator, named with its domain, has no rule, if there is a reason.
pub(super) fn why_not(name: &str) -> Option<&'static str> {
    REFUSED.iter().find(|(own, _)| *own == name).map(|(_, reason)| *reason)
}

/// Operators that have no rule, named with their domains, and why.
pub fn refused() -> &'static [(&'static str, &'static str)] {
    REFUSED
}

/// The domains and names of all operators that have rules.
pub fn supported() -> Vec<(&'static str, &'static str)> {
    let mut all: Vec<_> = BY_NAME.keys().copied().collect();
    all.sort_unstable();
    all
}

/// One result.
fn one(value: ValueId) -> Rule {
    Ok(vec![value.into()])
}

/// Several results.
fn many(values: impl IntoIterator<Item = ValueId>) -> Rule {
    Ok(values.into_iter().map(Val::from).collect())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn each_operator_is_in_one_table() {
        assert_eq!(
            BY_NAME.len(),
            FAMILIES.iter().chain(microsoft::FAMILIES).map(|family| family.len()).sum::<usize>()
        );
        assert!(REFUSED.iter().all(|(name, _)| find("", name).is_none()));
    }
}
