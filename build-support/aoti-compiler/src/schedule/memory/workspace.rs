//! What lies behind the temporaries of an arena: what one kernel needs while it runs, beside the scratch of threads.

use super::{MemoryPlan, most};
use crate::kernels::gemm::library::library_product;
use crate::kernels::{Scratch, Selection};
use crate::loops::{Kernel, KernelId, KernelKind, Program};
use crate::symbolic::{Expr, Ranges};
use crate::target::Target;
use cranelift_entity::PrimaryMap;

/// Memory that a library may use for a product (`kLibraryBytes` of `gpu/library.h`).
pub(crate) const LIBRARY_BYTES: i64 = 32 << 20;
/// What an `AotiError` takes, aligned as everything in the arena is.
pub(crate) const REPORT_BYTES: i64 = 320;

/// Bytes of the arena of a plan with what lies behind it. Kernels run one after the other, so the largest is enough.
pub(super) fn total(
    program: &Program,
    choices: &PrimaryMap<KernelId, Selection>,
    plan: &MemoryPlan,
    (ranges, target): (&dyn Ranges, &Target),
) -> Expr {
    program.kernels.iter().fold(plan.arena_bytes.clone(), |total, (id, kernel)| {
        let early = choices.get(id).filter(|_| !plan.late_scratch.contains_key(&id));
        let scratch = early.and_then(|choice| on_device(&choice.scratch, target));
        let scratch = scratch.map(|bytes| most(&program.symbols, bytes, ranges));
        let others = choices.get(id).and_then(|choice| of_others(program, kernel, choice, target));
        let all = scratch.into_iter().chain(others.map(Expr::int));
        all.fold(total, |total, bytes| total.maximum(&(&plan.arena_bytes + &bytes)))
    })
}

/// The scratch that a kernel on a device has; threads of a processor have it elsewhere.
fn on_device<'a>(scratch: &'a Scratch, target: &Target) -> Option<&'a Expr> {
    match target {
        Target::Cpu(_) => None,
        Target::Gpu(_) => (!scratch.is_empty()).then_some(&scratch.shared),
    }
}

/// What is for those who are asked instead of a kernel: a library's own memory, and where a function says what went wrong. No
/// other kernel writes there before it is read.
fn of_others(program: &Program, kernel: &Kernel, choice: &Selection, target: &Target) -> Option<i64> {
    match &kernel.kind {
        // A collective reports to the run.
        KernelKind::Extern(own) => own.function().map(|_| REPORT_BYTES),
        KernelKind::MatMul(matmul) => {
            let is_left = matches!(target, Target::Gpu(_)) && choice.algorithm.library().is_some();
            (is_left && library_product(program, matmul).is_some()).then_some(LIBRARY_BYTES)
        }
        KernelKind::Nest(_)
        | KernelKind::Convolution(_)
        | KernelKind::Attention(_)
        | KernelKind::AxisOp(_) => None,
    }
}
