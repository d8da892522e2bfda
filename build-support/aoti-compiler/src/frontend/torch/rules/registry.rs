//! The table of operator overloads that have a rule, or a reason why they have none.

use super::complex::How;
use super::unsupported::table::{REFUSED, Refusal};
use super::{Args, Check, Context, RuleError};
use crate::frontend::torch::aten::{Call, updates_statistics};
use crate::frontend::torch::custom::{Declared, Operators};
use crate::graph::ValueId;
use crate::symbolic::Expr;
use indexmap::IndexMap;

/// What a rule gives for one output of a call.
#[derive(Clone, Debug)]
pub enum Outputs {
    /// One tensor.
    One(ValueId),
    /// Several outputs, each a tensor (`None` where the schema's output is not computed because nobody can use it).
    Many(Vec<Option<ValueId>>),
    /// One output that is a list of tensors.
    List(Vec<ValueId>),
    /// One output that is an integer.
    Int(Expr),
    /// No output.
    Nothing,
}

impl From<ValueId> for Outputs {
    fn from(value: ValueId) -> Outputs {
        Outputs::One(value)
    }
}

/// The body of a rule.
pub type RuleFn = fn(&mut Context, &Args) -> Result<Outputs, RuleError>;

/// How the outputs of an operator relate to the storage of its operands.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Kind {
    /// Outputs are new tensors.
    Pure,
    /// Outputs are windows onto the storage of the argument `self` (or of the first tensor argument).
    View,
    /// The argument `self` is overwritten with the output, which is returned.
    InPlace,
}

/// One overload's rule.
#[derive(Clone, Copy)]
pub struct Rule {
    /// The overload, such as `aten.add.Tensor`.
    pub name: &'static str,
    /// Relation of outputs to operands.
    pub kind: Kind,
    /// What computes them.
    pub run: RuleFn,
}

impl Rule {
    /// Builds what the overload gives, with the checks of data that it has.
    pub(crate) fn run_on(&self, cx: &mut Context, args: &Args) -> Result<Outputs, RuleError> {
        cx.overwritten.clear();
        cx.check_data(self.name, args)?;
        (self.run)(cx, args)
    }
}

/// What is known of an overload.
#[derive(Clone, Copy)]
pub enum Entry {
    /// It has a rule.
    Rule(Rule),
    /// No rule can serve it.
    Refused(Refusal),
}

/// The tables of all families but gradients, in the order in which documents list them.
const FAMILIES: &[&[Rule]] = &[
    super::pointwise::RULES,
    super::linalg::solve::RULES,
    super::linalg::tensorsolve::RULES,
    super::statistics::RULES,
    super::cross_entropy::RULES,
    super::loss::RULES,
    super::ctc_loss::RULES,
    super::normalization::RULES,
    super::scan::RULES,
    super::finite_differences::RULES,
    super::searchsorted::RULES,
    super::segment_reduce::RULES,
    super::sort::RULES,
    super::softmax::RULES,
    super::reduction::RULES,
    super::norm::RULES,
    super::minmax::RULES,
    super::activation::RULES,
    super::unary::RULES,
    super::ternary::RULES,
    super::casts::RULES,
    super::attention::RULES,
    super::encoder_layer::RULES,
    super::matmul::RULES,
    super::grouped_mm::RULES,
    super::convolution::RULES,
    super::einsum::RULES,
    super::embedding::RULES,
    super::linalg::products::RULES,
    super::masked::RULES,
    super::checks::RULES,
    super::random::rejection_sampling::RULES,
    super::interpolate::RULES,
    super::interpolate_antialias::RULES,
    super::grid_sample::RULES,
    super::pooling::RULES,
    super::quant::pt2e::RULES,
    super::quant::qparams::RULES,
    super::linalg::orthogonal::RULES,
    super::quant::fake_quant::RULES,
    super::float8::RULES,
    super::quant::torchao::RULES,
    super::deform_conv::RULES,
    super::nms::RULES,
    super::dropout::RULES,
    super::roi_align::RULES,
    super::roi_pool::RULES,
    super::adaptive_pooling::RULES,
    super::gather::RULES,
    super::recurrent::RULES,
    super::creation::RULES,
    super::index::RULES,
    super::matrices::RULES,
    super::concat::RULES,
    super::padding::RULES,
    super::random::ops::RULES,
    super::rearrange::RULES,
    super::shape::RULES,
    super::bitcast::RULES,
    super::histogram::RULES,
    super::signal::RULES,
    super::slice::RULES,
    super::fft::RULES,
    super::as_strided::RULES,
    super::unique::RULES,
    super::collective::RULES,
];

/// All rules and refusals by overload name.
pub struct Registry<'o> {
    /// What the user's project adds.
    declared: Option<&'o Operators>,
    entries: IndexMap<&'static str, Entry>,
    complex: IndexMap<&'static str, How>,
}

impl<'o> Registry<'o> {
    /// The tables of all families, and operators of the user's project.
    pub fn with(operators: &'o Operators) -> Registry<'o> {
        Registry { declared: Some(operators), ..Registry::new() }
    }

    /// The operator of the user's project that a call is of.
    pub(crate) fn declared(&self, target: &str) -> Option<&'o Declared> {
        self.declared?.find(target)
    }

    /// Collects the tables of all families.
    pub fn new() -> Registry<'o> {
        let families = FAMILIES.iter().chain(super::gradients::RULES);
        let rules = families.copied().flatten().map(|rule| (rule.name, Entry::Rule(*rule)));
        let refused = REFUSED.iter().map(|(name, refusal)| (*name, Entry::Refused(*refusal)));
        let mut entries = IndexMap::new();
        for (name, entry) in rules.chain(refused) {
            let earlier = entries.insert(name, entry);
            debug_assert!(earlier.is_none(), "two rules for {name}");
        }
        let mut registry = Registry { declared: None, entries, complex: IndexMap::new() };
        let tables = [
            super::complex::table::TABLE,
            super::complex::arranged::TABLE,
            super::fft::TABLE,
            super::stft::TABLE,
        ];
        for (name, how) in tables.into_iter().flatten() {
            let earlier = registry.complex.insert(*name, *how);
            debug_assert!(earlier.is_none(), "two complex rules for {name}");
            if registry.entry(name).is_none() {
                let rule = Rule { name, kind: Kind::Pure, run: of_complex_alone };
                registry.entries.insert(*name, Entry::Rule(rule));
            }
        }
        registry
    }

    /// The rule for an overload.
    pub fn find(&self, target: &str) -> Option<Rule> {
        let Entry::Rule(rule) = self.entry(target)? else { return None };
        Some(rule)
    }

    /// Whether a call writes into tensors that it is given.
    pub(crate) fn changes_operands(&self, call: &Call) -> bool {
        let target = call.target.as_str();
        let declared = self.declared(target);
        declared.is_some_and(|own| own.schema.arguments.iter().any(|argument| argument.is_changed))
            || self.find(target).is_some_and(|rule| rule.kind == Kind::InPlace)
            || updates_statistics(call)
    }

    /// What is known of an overload. An in-place overload `aten.f_.X` without an entry of its own uses that of
    /// `aten.f.X`; a second name of an operator uses the operator's; an entry `aten.f.*` serves all functional
    /// overloads.
    pub fn entry(&self, target: &str) -> Option<Entry> {
        let mut parts = target.splitn(3, '.');
        let (namespace, name, overload) = (parts.next()?, parts.next()?, parts.next()?);
        let names = [Some(name), super::aliases::canonical(name)];
        names.into_iter().flatten().find_map(|name| self.lookup(namespace, name, overload))
    }

    fn lookup(&self, namespace: &str, name: &str, overload: &str) -> Option<Entry> {
        if let Some(entry) = self.exact(namespace, name, overload) {
            return Some(entry);
        }
        let functional = name.strip_suffix('_').filter(|base| !base.is_empty() && !base.ends_with('_'))?;
        Some(match self.exact(namespace, functional, overload)? {
            Entry::Rule(rule) => Entry::Rule(Rule { kind: Kind::InPlace, ..rule }),
            refused @ Entry::Refused(_) => refused,
        })
    }

    fn exact(&self, namespace: &str, name: &str, overload: &str) -> Option<Entry> {
        if let Some(entry) = self.entries.get(format!("{namespace}.{name}.{overload}").as_str()) {
            return Some(*entry);
        }
        // Overloads that write into given tensors or take lists have another meaning.
        let other_meaning = overload.contains("out") || overload.contains("list");
        if other_meaning { None } else { self.entries.get(format!("{namespace}.{name}.*").as_str()).copied() }
    }

    /// How an overload is computed where complex numbers are among its tensors; whether it overwrites its operand.
    pub(crate) fn complex(&self, target: &str) -> Option<(How, bool)> {
        let mut parts = target.splitn(3, '.');
        let (namespace, name, overload) = (parts.next()?, parts.next()?, parts.next()?);
        let find = |name: &str| {
            let exact = self.complex.get(format!("{namespace}.{name}.{overload}").as_str());
            exact.or_else(|| self.complex.get(format!("{namespace}.{name}.*").as_str())).copied()
        };
        for name in [Some(name), super::aliases::canonical(name)].into_iter().flatten() {
            let functional = name.strip_suffix('_').filter(|base| !base.is_empty() && !base.ends_with('_'));
            let found = find(name).map(|how| (how, false));
            if let Some(found) = found.or_else(|| Some((find(functional?)?, true))) {
                return Some(found);
            }
        }
        None
    }

    /// What an operator, named without its overload, checks of its data.
    pub fn checks(&self, operator: &str) -> &'static [Check] {
        super::data_checks::of_operator(operator).unwrap_or_default()
    }

    /// The names of all overloads with a rule, in table order.
    pub fn names(&self) -> impl Iterator<Item = &'static str> + '_ {
        let rules = self.entries.iter().filter(|(_, entry)| matches!(entry, Entry::Rule(_)));
        rules.map(|(name, _)| *name)
    }
}

/// Stands for operators that have a meaning for complex numbers alone.
fn of_complex_alone(_cx: &mut Context, _a: &Args) -> Result<Outputs, RuleError> {
    Err(RuleError::Malformed("no complex numbers are among its tensors".to_owned()))
}

impl Default for Registry<'_> {
    fn default() -> Self {
        Registry::new()
    }
}

/// Writes a family's table: `rules! { pure "aten.abs.default" => abs, view "aten.t.default" => t, }`.
macro_rules! rules {
    ($($kind:ident $name:literal => $run:expr,)*) => {
        /// The family's rules.
        pub(crate) const RULES: &[$crate::frontend::torch::rules::Rule] = &[$(
            $crate::frontend::torch::rules::Rule { name: $name, kind: rules!(@kind $kind), run: $run },
        )*];
    };
    (@kind pure) => { $crate::frontend::torch::rules::Kind::Pure };
    (@kind view) => { $crate::frontend::torch::rules::Kind::View };
    (@kind inplace) => { $crate::frontend::torch::rules::Kind::InPlace };
}
pub(crate) use rules;
