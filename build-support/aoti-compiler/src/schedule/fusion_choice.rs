//! Whether two kernels that may become one do: as is thought to be faster, or as a record says. Where neither is clearly
//! faster the decision is a question, with a key of its own, that can be measured.
//!
//! Whether they may at all is decided in `fuse.rs`; no record has a say in that.

use super::Costs;
use super::fuse::{is_flat, is_small};
use super::setting::Setting;
use crate::cost::{Cost, WorkKind};
use crate::kernels;
use crate::kernels::nest::cpu::{epilogue_cost, nest_cost};
use crate::loops::{Kernel, KernelClass, KernelKind, Nest, Program, Stage};
use crate::symbolic::Expr;
use crate::target::Target;
use crate::tuning::Alternative;

/// One kernel for both costs at least this part of two kernels where the decision is a close one.
const CLOSE: f64 = 0.95;
/// Terms of a kernel of which some no longer fit in registers.
const MANY_TERMS: usize = 96;
/// Terms from which on a loop of their own may compute them faster than the epilogue of a contraction does.
const HEAVY_EPILOGUE: usize = 8;
/// Threads that a machine may have, to be kept busy.
const MANY_THREADS: i64 = 64;

/// Whether two kernels become one.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum FusionChoice {
    /// They do.
    Fuse,
    /// They do not.
    Separate,
}

/// Two kernels with what they would be as one.
pub(super) struct Case<'a> {
    pub(super) program: &'a Program,
    pub(super) producer: &'a Kernel,
    pub(super) consumer: (&'a Kernel, &'a Nest),
    pub(super) target: &'a Target,
    fused: &'a KernelKind,
    /// What the fused kernel costs, and what the two do.
    cost_fused: Cost,
    cost_apart: Cost,
}

impl<'a> Case<'a> {
    pub(super) fn new(
        (program, target): (&'a Program, &'a Target),
        producer: &'a Kernel,
        consumer: (&'a Kernel, &'a Nest),
        fused: &'a KernelKind,
    ) -> Case<'a> {
        let of = |kind: &KernelKind| cost(program, producer, kind, target);
        let cost_apart = of(&producer.kind).plus(&nest_cost(consumer.1, &target.prices())).and_kernel();
        let cost_fused = of(fused);
        Case { program, producer, consumer, target, fused, cost_fused, cost_apart }
    }

    /// What both cost; none of kinds whose own work is the same either way and is not counted.
    pub(super) fn costs(&self) -> Option<Costs> {
        let prices = self.target.prices();
        let costs = Costs { apart: prices.total(&self.cost_apart), fused: prices.total(&self.cost_fused) };
        (costs.fused > 0.0).then_some(costs)
    }

    /// What is done without a record, then the other; and the answers to the question, where the other may be faster.
    pub(super) fn answers(&self) -> ([FusionChoice; 2], Option<Vec<Alternative>>) {
        let joint = if self.loses_parallelism() { FusionChoice::Separate } else { FusionChoice::Fuse };
        let (is_open, is_shared) = match (self.is_close(), self.keeps_few_busy()) {
            (true, _) => (true, false),
            (false, few) => (few || joint == FusionChoice::Separate, few),
        };
        let answers = || {
            let fused = Alternative::new(Setting::Pair(FusionChoice::Fuse), self.cost_fused);
            let apart = Alternative::new(Setting::Pair(FusionChoice::Separate), self.cost_apart);
            let apart = Alternative { is_shared, ..apart };
            match joint {
                FusionChoice::Fuse => vec![fused, apart],
                FusionChoice::Separate => vec![apart, fused],
            }
        };
        let fusion_choice = match joint {
            FusionChoice::Fuse => [FusionChoice::Fuse, FusionChoice::Separate],
            FusionChoice::Separate => [FusionChoice::Separate, FusionChoice::Fuse],
        };
        (fusion_choice, is_open.then(answers))
    }

    /// Whether the loop that would be left has too few positions for the machine, and there is work for more.
    fn loses_parallelism(&self) -> bool {
        let target = self.target;
        let (KernelKind::Nest(producer), consumer) = (&self.producer.kind, self.consumer.1) else {
            return false;
        };
        let loses = |rows: &Nest, flat: &Nest| {
            // Sizes that are not known are taken for large ones.
            let few = positions(rows).filter(|count| *count <= target.few_rows());
            few.is_some_and(|count| !is_small(flat, target.serial_elements().saturating_mul(count.max(1))))
        };
        match (is_flat(producer), is_flat(consumer)) {
            (true, false) => loses(consumer, producer),
            (false, true) => loses(producer, consumer),
            (true, true) | (false, false) => false,
        }
    }

    /// Whether fewer threads can share the loops that are left than those of one of the two.
    fn keeps_few_busy(&self) -> bool {
        let Target::Cpu(target) = self.target else { return false };
        let KernelKind::Nest(fused) = &self.fused else { return false };
        let KernelKind::Nest(producer) = &self.producer.kind else { return false };
        let few = |nest: &Nest| positions(nest).is_some_and(|count| count < MANY_THREADS);
        let shared = |nest: &Nest| !few(nest) && !is_small(nest, target.thread_work);
        few(fused) && (shared(producer) || shared(self.consumer.1))
    }

    /// Whether it is not clear that one kernel is faster where all of the machine that it can use is busy.
    fn is_close(&self) -> bool {
        let terms = |stages: &[Stage]| stages.iter().map(|stage| stage.terms.len()).sum::<usize>();
        let prices = self.target.prices();
        let (fused, apart) = (prices.total(&self.cost_fused), prices.total(&self.cost_apart));
        match self.fused.class() {
            KernelClass::Loops(nest) => fused >= CLOSE * apart || terms(&nest.stages) > MANY_TERMS,
            // Rows that are finished at once are near, but fewer rows are computed at a time.
            KernelClass::Contraction { rows: Some(_), .. } => true,
            KernelClass::Contraction { rows: None, .. } => {
                let gathers = |cost: &Cost| cost.amount(WorkKind::Gather) + cost.amount(WorkKind::Strided);
                terms(&self.consumer.1.stages) > HEAVY_EPILOGUE
                    || gathers(&self.cost_fused) > gathers(&self.cost_apart)
            }
            KernelClass::Attention(_) | KernelClass::Whole => false,
        }
    }
}

/// What a kernel of this kind costs. The contraction of both is the producer's.
fn cost(program: &Program, producer: &Kernel, kind: &KernelKind, target: &Target) -> Cost {
    let contraction =
        || kernels::candidates(program, producer, target).first().map(|way| way.cost).unwrap_or_default();
    match kind.class() {
        KernelClass::Loops(nest) => nest_cost(nest, &target.prices()),
        KernelClass::Contraction { axes, epilogue, rows } => {
            let rows = rows.map(|rows| nest_cost(rows, &target.prices()));
            contraction().plus(&epilogue_cost(epilogue, axes)).plus(&rows.unwrap_or_default())
        }
        KernelClass::Attention(_) | KernelClass::Whole => Cost::default(),
    }
}

/// How many positions threads can share.
fn positions(nest: &Nest) -> Option<i64> {
    Expr::product(nest.axes.iter().map(|axis| &axis.extent)).as_int()
}
