//! The distinct device functions of a program: kernels of equal text are one function.

use super::{DeviceText, index_type, print_kernel};
use crate::codegen::c_family::expr::{scalar, symbol_name};
use crate::codegen::functions::{FunctionId, join_origins};
use crate::codegen::run::{Call, Callees, Launch, LaunchPart, Library, Operands};
use crate::loops::KernelId;
use crate::names::{Language, Namer};
use crate::schedule::Schedule;
use crate::symbolic::{RangeTable, Symbol};
use cranelift_entity::PrimaryMap;
use indexmap::IndexMap;

/// A device function and its text.
pub(super) struct Function {
    pub(super) name: String,
    pub(super) text: DeviceText,
    /// Shared memory that some launch asks for at most.
    pub(super) shared: i64,
}

/// All device functions of a program.
pub(super) struct Functions<'a> {
    pub(super) all: PrimaryMap<FunctionId, Function>,
    ranges: &'a RangeTable,
    /// By their definition without a name.
    by_text: IndexMap<String, FunctionId>,
    namer: Namer,
}

impl<'a> Functions<'a> {
    pub(super) fn new(ranges: &'a RangeTable) -> Functions<'a> {
        let namer = Namer::new(Language::C);
        Functions { all: PrimaryMap::new(), ranges, by_text: IndexMap::new(), namer }
    }
}

impl Library for Functions<'_> {
    fn add(&mut self, schedule: &Schedule, id: KernelId) -> Operands {
        let (mut buffers, mut sizes, mut launches) = (Vec::new(), Vec::new(), Vec::new());
        for text in print_kernel(schedule, id) {
            (buffers, sizes) = (text.arguments.clone(), text.symbols.clone());
            let launch = text.launch.clone();
            launches.push((self.function(schedule, id, text), launch));
        }
        let Some((function, _)) = launches.first() else { unreachable!("a kernel is launched") };
        let packed = schedule.choices[id].packed.clone();
        Operands { function: *function, buffers, packed, sizes, launches }
    }
}

impl Functions<'_> {
    /// The function of one launch of a kernel.
    fn function(&mut self, schedule: &Schedule, id: KernelId, text: DeviceText) -> FunctionId {
        let key = text.definition("", "");
        let shared = text.launch.shared.interval(self.ranges).max;
        let function = match self.by_text.get(&key) {
            Some(&id) => {
                join_origins(&mut self.all[id].text.origins, &text.origins);
                id
            }
            None => {
                let name = self.namer.name(&format!("k_{}", schedule.program.kernels[id].name));
                let id = self.all.push(Function { name, text, shared: 0 });
                self.by_text.insert(key, id);
                id
            }
        };
        self.all[function].shared = self.all[function].shared.max(shared);
        function
    }
}

impl Callees for Functions<'_> {
    fn call(&self, _: &Call) -> String {
        unreachable!("kernels of a device are launched")
    }

    fn launch(&self, Launch { call, grid, block, shared, stays, part, .. }: &Launch) -> (String, String) {
        let (kernel, function) = (call.kernel.as_u32(), call.function.as_u32());
        let (blocks, threads, shared) = (scalar(&grid[0]), block[0], scalar(shared));
        let blocks = if *stays { format!("staying(run, {function}, {blocks})") } else { blocks };
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
