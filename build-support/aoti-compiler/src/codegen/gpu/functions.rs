//! The distinct device functions of a program: kernels of equal text are one function.

use super::{DeviceText, index_type, print_kernel};
use crate::codegen::c_family::expr::{scalar, symbol_name};
use crate::codegen::functions::{FunctionId, join_origins};
use crate::codegen::run::{Call, Callees, Launch, LaunchPart, LaunchShape, Library, Operands};
use crate::kernels::LibraryProduct;
use crate::kernels::gemm::library::library_product;
use crate::loops::{KernelId, KernelKind};
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
        let mut parts = Vec::new();
        let (mut buffers, mut sizes) = (Vec::new(), Vec::new());
        for text in print_kernel(schedule, id) {
            (buffers, sizes) = (text.arguments.clone(), text.symbols.clone());
            parts.push(self.part(schedule, id, text));
        }
        let mut parts = parts.into_iter();
        let (function, shape) = parts.next().expect("a kernel is launched");
        let packed = schedule.choices[id].packed.clone();
        Operands { function, buffers, packed, sizes, shape: Some(shape), then: parts.collect() }
    }
}

impl Functions<'_> {
    /// The function of one launch of a kernel.
    fn part(&mut self, schedule: &Schedule, id: KernelId, text: DeviceText) -> (FunctionId, LaunchShape) {
        let launch = text.launch.clone();
        let threads = u32::try_from(launch.threads).expect("blocks have at most 1024 threads");
        let key = text.definition("", "");
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
        let shared = launch.shared.interval(self.ranges).max;
        self.all[function].shared = self.all[function].shared.max(shared);
        let shape = LaunchShape {
            blocks: launch.blocks,
            threads,
            shared: launch.shared,
            scratch: launch.scratch,
            stays: launch.stays,
            maps: launch.maps,
            product: product(schedule, id),
        };
        (function, shape)
    }
}

/// What a library is asked for instead of a kernel, where one was chosen.
fn product(schedule: &Schedule, id: KernelId) -> Option<LibraryProduct> {
    let KernelKind::MatMul(matmul) = &schedule.program.kernels[id].kind else { return None };
    let is_chosen = schedule.choices[id].algorithm.library().is_some();
    is_chosen.then(|| library_product(&schedule.program, matmul)).flatten()
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
