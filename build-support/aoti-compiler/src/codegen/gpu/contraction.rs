//! Contractions as device code: tiles over blocks, operands as the values that templates read them by, the epilogue as a
//! lambda.

use super::{EACH_UNIT, MAPS, Printed, index_type};
use crate::codegen::c_family::contraction::{literal, merge_pixels, types};
use crate::codegen::c_family::expr::{scalar, symbol_name};
use crate::codegen::c_family::function::Parameters;
use crate::codegen::c_family::indent;
use crate::codegen::c_family::terms::{Context, Earlier, type_name};
use crate::codegen::c_family::whole::Whole;
use crate::dtype::DType;
use crate::kernels::GroupTiles;
use crate::kernels::gemm::group_tiles::few_in_run;
use crate::kernels::gemm::math_path::Asked;
use crate::kernels::launch::{Launch, MapArgument, Trigger};
use crate::kernels::mapping::Tile;
use crate::loops::{Axis, Channels, ConvShape, Convolution, Effect, MatMul, MatrixOperand, Program, Stage};
use crate::symbolic::{Expr, Symbol};
use std::fmt::Write;

/// The epilogue as statements that use `lanes` and `sum`, lanes along `vector`, of which so many begin at multiples of their number,
/// where that is known.
pub(super) fn epilogue(parameters: &Parameters, stage: &Stage, vector: Symbol, lanes: Option<i64>) -> String {
    let context = Context {
        whole: lanes.filter(|lanes| *lanes > 1).map(Whole::Inside),
        has_own_rows: false,
        given: None,
        parameters,
        stage,
        prefix: String::new(),
        vector: Some(vector),
        earlier: Earlier::OneLane,
        width: "lanes.width",
        first_lane: 1,
        positions: None,
        read_later: vec![],
        turned: &[],
    };
    let printed = context.print();
    format!("{}{}{}", printed.uniform, printed.body, printed.effects)
}

/// The positions of axes from the number of a unit.
pub(super) fn positions(axes: &[Axis], unit: &str, index: &str) -> String {
    let mut text = String::new();
    for (k, axis) in axes.iter().enumerate() {
        let stride = Expr::product(axes[k + 1..].iter().map(|axis| &axis.extent));
        let name = symbol_name(axis.symbol);
        let _ = writeln!(
            text,
            "const {index} {name} = {unit} / ({}) % ({});\n(void){name};",
            scalar(&stride),
            scalar(&axis.extent)
        );
    }
    text
}

/// What the threads of a block do, each in its role, over rings where they meet.
pub(super) fn in_roles(rings: &str, units: &str) -> String {
    format!("in_roles<{rings}>([&](auto &role) {{\n{}}});\n", indent(units, 1))
}

/// What is added to a buffer's address where an operand begins.
pub(super) fn offset(operand: &MatrixOperand) -> String {
    if operand.offset.is(0) { String::new() } else { format!(" + ({})", scalar(&operand.offset)) }
}

/// The loop over tiles around the call of the template.
fn tiles(batches: &Expr, tile: &Tile, inside: &str) -> String {
    let index = index_type(tile.index);
    // Neighbouring blocks have the same tile where they share it.
    let shared = if tile.blocks == 1 { String::new() } else { format!(" / {}", tile.blocks) };
    let (rows, columns) = (tile.rows, tile.columns);
    let place = if tile.producer_threads > 0 {
        format!(
            "const TilePlace<{index}> tile(unit, across, down);\n\
             const {index} column0 = tile.column * {columns}, row0 = tile.row * {rows}, batch = tile.batch;\n"
        )
    } else {
        format!(
            "const {index} column0 = unit % across * {columns}, row0 = unit / across % down * {rows}, \
             batch = unit / across / down;\n"
        )
    };
    format!(
        "const {index} across = ceil_div(n, {columns}), down = ceil_div(m, {rows});\n\
         {EACH_UNIT}for ({index} unit = {index}(block_index(){shared}); unit < across * down * ({}); unit += {index}(block_count(){shared})) {{\n\
         {}\x20 (void)batch, (void)row0;\n{}}}\n",
        scalar(batches),
        indent(&place, 1),
        indent(inside, 1),
    )
}

/// The call of the template for a tile, up to its operands.
fn template(tile: &Tile, lanes: i64, dtype: DType, early: bool) -> String {
    let call = (tile.by.row().call)(tile, &Asked { lanes, early });
    call.open(types(dtype), |name| (*name).to_owned()) + ",\n"
}

/// Neighbouring results that an epilogue gets at a time, so many at most. Where rows of what it stores are known to begin anywhere, each
/// thread would write what lies apart from what its neighbours write: fewer are stored at once then, by more threads side by side.
fn result_lanes(stage: &Stage, column: &Axis, most: i64) -> i64 {
    if column.extent.as_int().is_none() {
        return most;
    }
    let is_whole = |lanes: i64| {
        stage.effects.iter().all(|effect| match effect {
            Effect::Store { access, .. } => access
                .offset
                .affine_in(column.symbol)
                .is_none_or(|(step, rest)| !step.is(1) || rest.modulo(&Expr::int(lanes)).is(0)),
            Effect::Accumulate { .. } => true,
        })
    };
    std::iter::successors(Some(most), |lanes| Some(lanes / 2))
        .find(|lanes| *lanes <= 1 || is_whole(*lanes))
        .unwrap_or(1)
}

pub(super) fn matmul(
    program: &Program,
    parameters: &Parameters,
    matmul: &MatMul,
    (tile, launch): (&Tile, &Launch),
    groups: Option<&GroupTiles>,
) -> Printed {
    let index = index_type(tile.index);
    let rank = matmul.axes.len();
    let (batch, matrix) = matmul.axes.split_at(rank - 2);
    let (row, column) = (&matrix[0], &matrix[1]);
    let batches = Expr::product(batch.iter().map(|axis| &axis.extent));
    let (a, b) = (&matmul.a, &matmul.b);
    let by_depth = matmul.by_depth();
    let operand = |position: usize, operand: &MatrixOperand, outer: &Expr, depth: &Expr| {
        let pointer = parameters.buffer(operand.buffer);
        let (element, by_depth) = (type_name(program.buffers[operand.buffer].dtype), by_depth[position]);
        let (start, outer, depth) = (offset(operand), scalar(outer), scalar(depth));
        let matrix =
            format!("Strided<{element}, {index}, {by_depth}>{{whole({pointer}){start}, {outer}, {depth}}}");
        let Some(own) = launch.maps.get(position) else { return matrix };
        let (map, name) = (&own.map, MAPS[position]);
        if own.is_interleaved() {
            return interleaved(element, index, &matrix, name);
        }
        let batch: Vec<String> = map.batches.iter().map(|symbol| symbol_name(*symbol)).collect();
        let count = batch.len();
        format!(
            "Mapped<{element}, {index}, {by_depth}, {count}>{{{matrix}, {name}, {{{}}}}}",
            batch.join(", ")
        )
    };
    let right = match groups {
        None => operand(1, b, &b.column_stride, &b.row_stride),
        Some(GroupTiles { k, rows, bits, scale, .. }) => {
            let group = if rows == k { 0 } else { *rows };
            let (element, pointer) = (type_name(matmul.dtype), parameters.buffer(b.buffer));
            format!(
                "Grouped<{element}, {index}, {bits}, {group}, {scale}>{{(const u8 *)whole({pointer}), n, k}}"
            )
        }
    };
    let early = launch.trigger == Trigger::InTemplate;
    let (i, j) = (symbol_name(row.symbol), symbol_name(column.symbol));
    let lanes = |tile: &Tile| result_lanes(&matmul.epilogue, column, (tile.by.row().lanes)(matmul.dtype));
    let left = operand(0, a, &a.row_stride, &a.column_stride);
    let call = |tile: &Tile, epilogue: &str| {
        let template = template(tile, lanes(tile), matmul.dtype, early);
        format!("{}{template}    {left},\n    {right},\n    {epilogue});\n", positions(batch, "batch", index))
    };
    let lambda = format!(
        "[&]({index} {i}, {index} {j}, auto lanes, auto sum) {{\n      (void){i}, (void){j};\n{}    }}",
        indent(&epilogue(parameters, &matmul.epilogue, column.symbol, Some(lanes(tile))), 3)
    );
    let sizes = format!(
        "const {index} m = {}, n = {}, k = {};\n",
        scalar(&row.extent),
        scalar(&column.extent),
        scalar(&matmul.depth)
    );
    let few = groups.and_then(|groups| few_in_run(program, matmul, tile, groups));
    let units = match few {
        None => tiles(&batches, tile, &call(tile, &lambda)),
        Some(few) => format!(
            "const auto epilogue = {lambda};\nif (m <= {}) {{\n{}}} else {{\n{}}}\n",
            few.rows,
            indent(&tiles(&batches, &few, &call(&few, "epilogue")), 1),
            indent(&tiles(&batches, tile, &call(tile, "epilogue")), 1)
        ),
    };
    let units = if tile.producer_threads > 0 { in_roles("PieceRing", &units) } else { units };
    let own = (tile.by.row().header)(tile);
    let headers = std::iter::once(own).chain(groups.map(|_| "gpu/groups.h")).collect();
    Printed { body: sizes + &units, headers }
}

/// A convolution as a product of the weights and of the pixels of all images; the depth runs over input channels and taps.
/// What lies side by side in the result are columns: pixels, or channels where those are last. Groups are batches.
pub(super) fn convolution(
    program: &Program,
    parameters: &Parameters,
    conv: &Convolution,
    (tile, launch): (&Tile, &Launch),
) -> Printed {
    let (shape, index) = (ConvShape::new(program, conv), index_type(tile.index));
    let (stage, pixel) = merge_pixels(conv);
    let pixels = Expr::product(conv.spatial().iter().map(|axis| &axis.extent));
    let groups = Expr::int(shape.groups);
    let channels = conv.channel().extent.floor_div(&groups);
    let all_pixels = &conv.image().extent * &pixels;
    let names = [conv.image().symbol, conv.channel().symbol, pixel].map(symbol_name);
    let call = match conv.output_channels {
        Channels::First => {
            // No run of pixels ends in another image than it began in, where sizes are known.
            let divides = |lanes: &i64| pixels.as_int().is_none_or(|pixels| pixels % lanes == 0);
            let lanes = [8, 4, 2]
                .into_iter()
                .filter(|run| *run <= (tile.by.row().lanes)(conv.dtype))
                .find(divides)
                .unwrap_or(1);
            let [first, second] = maps(launch);
            let operands = [
                weights(parameters, conv, index, "m", first),
                pixel_operand(parameters, conv, index, second),
            ];
            let inside = epilogue(parameters, &stage, pixel, pixels.as_int().map(|_| lanes));
            over_pixels(&template(tile, lanes, conv.dtype, false), operands, index, &names, &pixels, &inside)
        }
        Channels::Last => {
            let [first, second] = maps(launch);
            let operands = [
                pixel_operand(parameters, conv, index, first),
                weights(parameters, conv, index, "n", second),
            ];
            let lanes = (tile.by.row().lanes)(conv.dtype);
            // The first channel of a group is at a multiple too.
            let is_whole = shape.groups == 1 || channels.modulo(&Expr::int(lanes)).is(0);
            let inside = epilogue(parameters, &stage, conv.channel().symbol, is_whole.then_some(lanes));
            over_channels(
                &template(tile, (tile.by.row().lanes)(conv.dtype), conv.dtype, false),
                operands,
                index,
                &names,
                &pixels,
                &inside,
            )
        }
    };
    let (rows, columns) = match conv.output_channels {
        Channels::First => (&channels, &all_pixels),
        Channels::Last => (&all_pixels, &channels),
    };
    let prelude = format!(
        "const ConvSizes<{index}> shape{};\n\
         const {index} m = {}, n = {}, k = shape.depth();\n",
        literal(&shape, &scalar),
        scalar(rows),
        scalar(columns),
    );
    let units = tiles(&groups, tile, &call);
    let units = if tile.producer_threads > 0 { in_roles("PieceRing", &units) } else { units };
    Printed { body: prelude + &units, headers: vec![(tile.by.row().header)(tile)] }
}

/// The maps of both operands and their names, where the copy engine brings them.
fn maps(launch: &Launch) -> [Option<Named<'_>>; 2] {
    [0, 1].map(|position| launch.maps.get(position).map(|own| (own, MAPS[position])))
}

type Named<'a> = (&'a MapArgument, &'static str);

fn interleaved(element: &str, index: &str, matrix: &str, name: &str) -> String {
    format!("Interleaved<{element}, {index}>{{{matrix}, {name}}}")
}

/// The operand of weights, of which a group has `rows` rows.
fn weights(
    parameters: &Parameters,
    conv: &Convolution,
    index: &str,
    rows: &str,
    map: Option<Named>,
) -> String {
    let (element, w) = (type_name(conv.dtype), parameters.buffer(conv.weight));
    if conv.conv.transposed {
        format!("TransposedWeights<{element}, {index}>{{{w}, shape, batch}}")
    } else {
        let matrix = format!("Strided<{element}, {index}, true>{{whole({w}) + batch * {rows} * k, k, 1}}");
        match map {
            None => matrix,
            Some((own, name)) if own.is_interleaved() => interleaved(element, index, &matrix, name),
            Some((_, name)) => format!("Mapped<{element}, {index}, true, 0>{{{matrix}, {name}, {{}}}}"),
        }
    }
}

/// The operand of pixels.
fn pixel_operand(parameters: &Parameters, conv: &Convolution, index: &str, map: Option<Named>) -> String {
    let (element, x) = (type_name(conv.dtype), parameters.buffer(conv.input));
    match conv.input_channels {
        Channels::First => {
            format!("Pixels<{element}, {index}, {}>{{{x}, shape, batch}}", conv.conv.transposed)
        }
        Channels::Last => {
            let pixels = format!("WidePixels<{element}, {index}>{{whole({x}), shape, batch}}");
            let Some((_, map)) = map else { return pixels };
            format!("MappedPixels<{element}, {index}, {}>{{{pixels}, {map}}}", conv.spatial().len())
        }
    }
}

/// The call of a template with pixels as columns, whose lanes stay within one image.
fn over_pixels(
    template: &str,
    [left, right]: [String; 2],
    index: &str,
    [n, c, p]: &[String; 3],
    pixels: &Expr,
    epilogue: &str,
) -> String {
    format!(
        "{template}    {left},\n    {right},\n\
         \x20   [&]({index} row, {index} column, auto lanes, auto sums) {{\n\
         \x20     const {index} {c} = batch * m + row;\n      (void){c};\n\
         \x20     by_image(lanes, column, {index}({pixels}), sums, [&](auto lanes, {index} {n}, {index} {p}, auto sum) {{\n\
         \x20       (void){n}, (void){p};\n{}      }});\n    }});\n",
        indent(epilogue, 4),
        pixels = scalar(pixels),
    )
}

/// The call of a template with channels as columns.
fn over_channels(
    template: &str,
    [left, right]: [String; 2],
    index: &str,
    [n, c, p]: &[String; 3],
    pixels: &Expr,
    epilogue: &str,
) -> String {
    format!(
        "{template}    {left},\n    {right},\n\
         \x20   [&]({index} row, {index} column, auto lanes, auto sum) {{\n\
         \x20     const {index} {n} = row / {index}({pixels}), {p} = row % {index}({pixels}), {c} = batch * n + column;\n\
         \x20     (void){n}, (void){p}, (void){c};\n{}    }});\n",
        indent(epilogue, 3),
        pixels = scalar(pixels),
    )
}
