//! The device functions of a program, printed: kernels that do the same are one function.

use super::{DeviceText, index_type, print_kernel};
use crate::codegen::c_family::expr::{scalar, symbol_name};
use crate::codegen::functions::join_origins;
use crate::codegen::run::Callees;
use crate::names::{Language, Namer};
use crate::runplan::{Call, Launch, LaunchPart};
use crate::schedule::{FunctionId, Schedule};
use crate::symbolic::{RangeTable, Symbol};
use cranelift_entity::PrimaryMap;

/// A device function and its text.
pub(super) struct Function {
    pub(super) name: String,
    pub(super) text: DeviceText,
    /// Shared memory that some launch asks for at most.
    pub(super) shared: i64,
}

/// All device functions of a program.
pub(super) struct Functions {
    pub(super) all: PrimaryMap<FunctionId, Function>,
}

impl Functions {
    /// Those of a schedule's kernels.
    pub(super) fn of(schedule: &Schedule, ranges: &RangeTable) -> Functions {
        let program = &schedule.program;
        let mut namer = Namer::new(Language::C);
        let mut all: PrimaryMap<FunctionId, Function> = PrimaryMap::new();
        for id in program.running() {
            let (kernel, functions) = (&program.kernels[id], &schedule.calls[id].functions);
            let mut texts = vec![];
            if functions.iter().any(|function| all.get(*function).is_none()) {
                texts = print_kernel(schedule, id);
            }
            for (position, (function, launch)) in functions.iter().zip(&schedule.launches[id]).enumerate() {
                if all.get(*function).is_none() {
                    let name = namer.name(&format!("k_{}", kernel.name));
                    let text = texts[position].clone();
                    let pushed = all.push(Function { name, text, shared: 0 });
                    debug_assert_eq!(
                        pushed, *function,
                        "functions are numbered in the order of their kernels"
                    );
                }
                let known = &mut all[*function];
                join_origins(&mut known.text.origins, &kernel.origins);
                known.shared = known.shared.max(launch.shared.interval(ranges).max);
            }
        }
        Functions { all }
    }
}

impl Callees for Functions {
    fn call(&self, _: &Call) -> String {
        unreachable!("kernels of a device are launched")
    }

    fn launch(
        &self,
        Launch { call, grid, block, shared, persistent, part, .. }: &Launch,
    ) -> (String, String) {
        let (kernel, function) = (call.kernel.as_u32(), call.function.as_u32());
        let (blocks, threads, shared) = (scalar(&grid[0]), block[0], scalar(shared));
        let blocks = if *persistent { format!("staying(run, {function}, {blocks})") } else { blocks };
        let part = match part {
            LaunchPart::Whole => "",
            LaunchPart::First => "<kFirst>",
            LaunchPart::Middle => "<kMiddle>",
            LaunchPart::Last => "<kLast>",
        };
        let head = format!("launch{part}(run, {kernel}, {function}, {blocks}, {threads}, {shared}");
        (head, self.all[call.function].name.clone())
    }

    fn size(&self, call: &Call, symbol: Symbol) -> String {
        let index = index_type(self.all[call.function].text.index);
        format!("{index}({})", symbol_name(symbol))
    }
}
