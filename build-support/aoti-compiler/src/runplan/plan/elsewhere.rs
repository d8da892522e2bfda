//! What a run has computed elsewhere: by functions of the user's project, and by several ranks together.

use super::{Action, Assert, Condition, Exchange, Expr, ExternKernel, Kernel, KernelId, KernelKind, Planner};
use crate::graph::{Collective, CollectiveKind};

/// The line of the user's program that a kernel computes, as the end of a sentence; or nothing.
fn place_of(kernel: &Kernel) -> String {
    let place = kernel.origins.first().map(|origin| origin.source.as_str()).filter(|place| !place.is_empty());
    place.map_or_else(String::new, |place| format!(" at {place}"))
}

impl Planner<'_> {
    /// A run ends where a function of the user's project says that something went wrong.
    pub(super) fn succeeded(&mut self, id: KernelId) -> Option<Action> {
        let kernel = &self.program.kernels[id];
        let KernelKind::Extern(own) = &kernel.kind else { return None };
        let message = format!("operator `{}`{}", own.function()?.operator, place_of(kernel));
        let (report, failure) = (self.workspace(), self.failure(message));
        Some(Action::Assert(Assert { condition: Condition::Succeeded(report), failure }))
    }

    /// What ranks compute together, with blocks counted in elements.
    pub(super) fn exchange(&mut self, id: KernelId, own: &ExternKernel, collective: &Collective) -> Action {
        let ((input, given), (output, made)) = (&own.inputs[0], &own.outputs[0]);
        let kernel = &self.program.kernels[id];
        let message =
            format!("{} of group `{}`{}", collective.kind.name(), collective.group, place_of(kernel));
        let mut collective = collective.clone();
        if let CollectiveKind::AllToAll { send, receive } = &mut collective.kind {
            let row = Expr::product(given.iter().skip(1));
            send.iter_mut().chain(receive).for_each(|size| *size = &*size * &row);
        }
        Action::Exchange(Exchange {
            kernel: id,
            collective,
            input: self.plain(*input),
            given: Expr::product(given),
            output: self.plain(*output),
            made: Expr::product(made),
            failure: self.failure(message),
        })
    }
}
