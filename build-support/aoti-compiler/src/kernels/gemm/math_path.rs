//! Who multiplies in the tiles of a GPU: a row for each, beside the choice of tiles (`tiles.rs`).

use super::loads::{has_whole_rows, is_of_whole_loads};
use crate::dtype::DType;
use crate::kernels::mapping::Tile;
use crate::kernels::{Call, Parameter};
use crate::loops::{MatMul, Program};
use crate::target::GpuTarget;

/// Who multiplies in a tile of a contraction.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum MathPath {
    /// Threads that share the depth of a few rows, for which memory is the limit.
    Gemv,
    /// Matrix units, of a few rows of halves, for which memory is the limit.
    SkinnyTensorCore,
    /// Matrix units, of a few rows with weights in groups, for which memory is the limit.
    SkinnyGroupQuantized,
    /// Threads with a few sums each.
    Simt,
    /// Threads with the windows of neighbouring outputs of a convolution: `conv/windows.rs`.
    DirectConv,
    /// Matrix units, where the device has them.
    TensorCore,
    /// Matrix units, of `f32` that is rounded to TF32.
    TensorCoreTf32,
}

/// What is known of one.
pub(crate) struct Row {
    /// Its name in records and text forms.
    pub(crate) word: &'static str,
    /// For people.
    pub(crate) description: &'static str,
    /// The header of its code for contractions.
    pub(crate) header: fn(&Tile) -> &'static str,
    /// Whether it multiplies the operands of a product as they are, or those of another kernel.
    pub(crate) fits: fn(Option<(&Program, &MatMul)>, &GpuTarget) -> bool,
    /// Neighbouring results of a type that an epilogue gets at a time, at most.
    pub(crate) lanes: fn(DType) -> i64,
    /// Whether weights are what takes the time, so that it asks for them before earlier kernels have ended.
    pub(crate) is_of_few: bool,
    /// The call for a tile up to its operands.
    pub(crate) call: fn(&Tile, &Asked) -> Call<&'static str>,
}

/// What a tile is asked for.
pub(crate) struct Asked {
    /// Neighbouring results that the epilogue gets at a time.
    pub(crate) lanes: i64,
    /// Whether weights may be asked for early.
    pub(crate) early: bool,
}

/// What most are given before their operands.
const PLACE: [&str; 5] = ["row0", "column0", "m", "n", "k"];
/// The same without rows, of which there is one block.
const COLUMN: [&str; 4] = ["column0", "m", "n", "k"];
/// Bytes of neighbouring results that matrix units hand to an epilogue at a time.
const RESULT_BYTES: i64 = 16;

static FEW: Row = Row {
    word: "few",
    description: "threads that share a row",
    header: |_| "gpu/contract.h",
    fits: |_, _| true,
    lanes: |_| 1,
    is_of_few: true,
    call: |tile, asked| {
        let sizes = [Parameter::Sum, number(tile.rows), number(tile.columns)];
        Call::new("contract_few", COLUMN).with(sizes.into_iter().chain(early(asked)))
    },
};

static FEW_UNITS: Row = Row {
    word: "few_units",
    description: "matrix units, weights read once",
    header: |_| "gpu/skinny.h",
    fits: |product, _| {
        let is_whole = |(program, matmul): (&Program, &MatMul)| {
            matmul.dtype.is_half() && is_of_whole_loads(program, matmul)
        };
        product.is_some_and(is_whole)
    },
    lanes: |_| 1,
    is_of_few: true,
    call: |tile, asked| {
        let sizes = [Parameter::Element, number(tile.rows)];
        Call::new("contract_skinny", COLUMN).with(sizes.into_iter().chain(early(asked)))
    },
};

static FEW_GROUPS: Row = Row {
    word: "few_groups",
    description: "matrix units, numbers of a few bits read once",
    header: |_| "gpu/groups.h",
    fits: |product, _| {
        product.is_some_and(|(program, matmul)| {
            let has_numbers = matmul.dtype == DType::F32 || matmul.dtype.is_half();
            has_numbers && has_whole_rows(program, matmul)
        })
    },
    call: |tile, asked| {
        let sizes = [Parameter::Element, number(tile.rows)];
        Call::new("contract_grouped", COLUMN).with(sizes.into_iter().chain(early(asked)))
    },
    ..FEW_UNITS
};

static THREADS: Row = Row {
    word: "threads",
    description: "threads",
    header: |_| "gpu/contract.h",
    fits: |_, _| true,
    lanes: |_| 4,
    is_of_few: false,
    call: |tile, asked| Call::new("contract", PLACE).with(sizes(Parameter::Sum, tile, asked)),
};

static WINDOWS: Row =
    Row { word: "windows", description: "threads with windows", header: |_| "gpu/windows.h", ..THREADS };

static UNITS: Row = Row {
    word: "units",
    description: "matrix units",
    header: |tile| if tile.producer_threads > 0 { "gpu/unit_roles.h" } else { "gpu/units.h" },
    fits: widens_nothing,
    lanes: |dtype| RESULT_BYTES / dtype.size() as i64,
    is_of_few: false,
    call: |tile, asked| on_units(Parameter::Element, tile, asked),
};

static ROUNDED_UNITS: Row = Row {
    word: "tf32",
    description: "matrix units as TF32",
    call: |tile, asked| on_units("Tf32".into(), tile, asked),
    ..UNITS
};

impl MathPath {
    /// All of them.
    pub const ALL: [MathPath; 7] = [
        MathPath::Gemv,
        MathPath::SkinnyTensorCore,
        MathPath::SkinnyGroupQuantized,
        MathPath::Simt,
        MathPath::DirectConv,
        MathPath::TensorCore,
        MathPath::TensorCoreTf32,
    ];

    /// What is known of it.
    pub(crate) fn row(self) -> &'static Row {
        match self {
            MathPath::Gemv => &FEW,
            MathPath::SkinnyTensorCore => &FEW_UNITS,
            MathPath::SkinnyGroupQuantized => &FEW_GROUPS,
            MathPath::Simt => &THREADS,
            MathPath::DirectConv => &WINDOWS,
            MathPath::TensorCore => &UNITS,
            MathPath::TensorCoreTf32 => &ROUNDED_UNITS,
        }
    }
}

fn widens_nothing(product: Option<(&Program, &MatMul)>, _: &GpuTarget) -> bool {
    product.is_none_or(|(program, matmul)| !matmul.widens(program))
}

/// By all threads, or by those that multiply what others have brought.
fn on_units(element: Parameter, tile: &Tile, asked: &Asked) -> Call<&'static str> {
    if tile.producer_threads == 0 {
        return Call::new("contract_units", PLACE).with(sizes(element, tile, asked));
    }
    let numbers = [tile.rows, tile.columns, asked.lanes].into_iter().chain(shared_by(tile)).map(number);
    Call::new("contract_brought", ["role"].into_iter().chain(PLACE))
        .with([element].into_iter().chain(numbers))
}

fn number(value: i64) -> Parameter {
    value.to_string().into()
}

/// Elements, sizes of a tile, lanes of the epilogue, and the blocks that share the tile where there are several.
fn sizes(element: Parameter, tile: &Tile, asked: &Asked) -> Vec<Parameter> {
    let Tile { rows, columns, threads, .. } = *tile;
    let numbers = [rows, columns, threads, asked.lanes].into_iter().chain(shared_by(tile));
    [element].into_iter().chain(numbers.map(number)).collect()
}

/// The blocks that share a tile, where there are several.
fn shared_by(tile: &Tile) -> Option<i64> {
    (tile.blocks != 1).then_some(tile.blocks)
}

fn early(asked: &Asked) -> Option<Parameter> {
    asked.early.then(|| "true".into())
}
