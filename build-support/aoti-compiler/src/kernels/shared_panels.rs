//! Weights that a product has in panels and loops look rows up in, such as a tied embedding, are stored once: loops read the panels.
//!
//! The rule: where every reader of a constant of at least [`LEAST_BYTES`] is a product that packs it whole, its depth within rows, or
//! loops that read elements of it, all of them read panels. The elements of a row then are a row of the panel apart, which
//! costs a lookup of few rows little beside the product, whereas a product that packs the constant in each run reads it twice.

use super::weight_form::PANEL_BYTES;
use super::{Form, PackedOperand, Packing, Selection};
use crate::graph::{BinaryOp, Scalar};
use crate::loops::{
    Access, Axis, BufferId, Effect, Kernel, KernelId, KernelKind, Nest, Program, Stage, Storage, Term,
    TermId, TypedTerm,
};
use crate::symbolic::{Expr, RangeTable};
use cranelift_entity::PrimaryMap;
use std::collections::BTreeMap;

/// Bytes from which on a second copy of a constant is too much.
const LEAST_BYTES: usize = 1 << 20;

/// Panels of a constant whose rows are as long as the sums of a product.
#[derive(Clone, Copy)]
struct Panels {
    depth: i64,
    width: i64,
}

impl Panels {
    /// Of a form in which a product reads a constant, if it holds all the elements as they are.
    fn of(program: &Program, operand: &PackedOperand) -> Option<Panels> {
        let buffer = &program.buffers[operand.buffer];
        let Storage::Constant(_) = buffer.storage else { return None };
        let Form::Packed(Packing::Product { offset: 0, row_stride: 1, col_stride, k, n, narrow }) =
            operand.form
        else {
            return None;
        };
        let is_whole = Expr::product(&buffer.shape).as_int() == i64::try_from(k.checked_mul(n)?).ok();
        let dtype = buffer.dtype;
        // Bytes and narrower floats are packed in forms that are not their elements as they are.
        let holds = dtype.is_float() && dtype.size() > 1 && narrow == dtype.is_half();
        // Panels are as wide as those of the numbers that sums have.
        let width = PANEL_BYTES / i64::try_from(dtype.compute().size()).ok()?;
        (holds && is_whole && col_stride == k).then_some(Panels { depth: i64::try_from(k).ok()?, width })
    }

    /// The row, as far as an expression says it, and the column of what an access reads; nothing where there is more to a row
    /// than one index from data.
    fn position(self, access: &Access, ranges: &RangeTable) -> Option<(Expr, Expr)> {
        let depth = Expr::int(self.depth);
        let row = access.offset.floor_div_in(&depth, ranges);
        let column = access.offset.modulo_in(&depth, ranges);
        let is_plain = match access.indirect.as_slice() {
            [] => true,
            [(_, stride)] => row.is(0) && stride.is(self.depth),
            _ => false,
        };
        is_plain.then_some((row, column))
    }
}

/// Lets loops read the panels that products have of the same constants.
pub(crate) fn share_panels(program: &Program, choices: &mut PrimaryMap<KernelId, Selection>) {
    for form in shared(program, choices) {
        for (id, kernel) in &program.kernels {
            if matches!(kernel.kind, KernelKind::Nest(_)) && kernel.reads().contains(&form.buffer) {
                choices[id].packed.push(form.clone());
            }
        }
    }
}

/// The constants for which the rule holds, in the form of their products.
fn shared(program: &Program, choices: &PrimaryMap<KernelId, Selection>) -> Vec<PackedOperand> {
    let mut forms: BTreeMap<BufferId, &PackedOperand> = BTreeMap::new();
    let is_large = |operand: &&PackedOperand| {
        let Storage::Constant(id) = program.buffers[operand.buffer].storage else { return false };
        program.constants[id].data.len() >= LEAST_BYTES
    };
    for operand in choices.values().flat_map(|choice| &choice.packed).filter(is_large) {
        forms.entry(operand.buffer).or_insert(operand);
    }
    let is_shared = |operand: &&PackedOperand| {
        let Some(panels) = Panels::of(program, operand) else { return false };
        let readers = program.kernels.iter().filter(|(_, kernel)| kernel.reads().contains(&operand.buffer));
        let mut readers = readers.map(|(id, kernel)| {
            choices[id].packed.contains(operand) || looks_up(program, kernel, operand.buffer, panels)
        });
        readers.all(|reads_panels| reads_panels)
    };
    forms.into_values().filter(is_shared).cloned().collect()
}

/// Whether a kernel consists of loops whose loads of a buffer can read panels.
fn looks_up(program: &Program, kernel: &Kernel, buffer: BufferId, panels: Panels) -> bool {
    let KernelKind::Nest(nest) = &kernel.kind else { return false };
    nest.stages.iter().all(|stage| {
        let ranges = ranges_in(program, &nest.axes, stage);
        let mut own = stage.loads().filter(|(access, _)| access.buffer == buffer);
        own.all(|(access, _)| panels.position(access, &ranges).is_some())
    })
}

fn ranges_in(program: &Program, axes: &[Axis], stage: &Stage) -> RangeTable {
    let mut ranges = crate::graph::ranges_of(&program.symbols);
    for axis in axes.iter().chain(&stage.axes) {
        ranges.set_extent(axis.symbol, axis.extent.clone());
    }
    ranges
}

/// Makes the loads of loops read the panels that they are given of constants, instead of the constants as the graph has them.
pub(crate) fn read_panels(program: &Program, nest: &mut Nest, packed: &[PackedOperand]) {
    let panels: BTreeMap<BufferId, Panels> =
        packed.iter().filter_map(|operand| Some((operand.buffer, Panels::of(program, operand)?))).collect();
    if panels.is_empty() {
        return;
    }
    let axes = nest.axes.clone();
    // What the terms of each stage have become.
    let mut places: Vec<Vec<TermId>> = Vec::new();
    for stage in &mut nest.stages {
        let ranges = ranges_in(program, &axes, stage);
        let mut terms = Vec::new();
        let mut own = Vec::new();
        for mut typed in std::mem::take(&mut stage.terms) {
            typed.term.renumber(&|term| own[term]);
            if let Term::Earlier { stage, term } = &mut typed.term {
                *term = places[*stage][*term];
            }
            if let Term::Load { access, .. } = &mut typed.term
                && let Some(panels) = panels.get(&access.buffer)
            {
                from_panels(access, *panels, &ranges, &mut terms);
            }
            own.push(terms.len());
            terms.push(typed);
        }
        stage.terms = terms;
        for effect in &mut stage.effects {
            match effect {
                Effect::Store { access, value, .. } => {
                    access.renumber(&|term| own[term]);
                    *value = own[*value];
                }
                Effect::Accumulate { value, .. } => *value = own[*value],
            }
        }
        places.push(own);
    }
}

/// An access to panels; what it takes to find the panel of an index from data is added to the terms before it.
fn from_panels(access: &mut Access, panels: Panels, ranges: &RangeTable, terms: &mut Vec<TypedTerm>) {
    let (row, column) = panels.position(access, ranges).expect("the choice is of loads that can");
    let width = Expr::int(panels.width);
    let pitch = panels.depth * panels.width;
    access.coords.clear();
    let (panel, own) = (row.floor_div_in(&width, ranges), row.modulo_in(&width, ranges));
    access.offset = &(&(&panel * pitch) + &(&column * panels.width)) + &own;
    if let Some((index, stride)) = access.indirect.first_mut() {
        // `index / width * pitch + index % width`
        let dtype = terms[*index].dtype;
        let index = *index;
        *stride = Expr::int(1);
        terms.push(TypedTerm { term: Term::Literal(Scalar::from(panels.width)), dtype });
        terms.push(TypedTerm { term: Term::Binary(BinaryOp::FloorDiv, index, terms.len() - 1), dtype });
        access.indirect.push((terms.len() - 1, Expr::int(pitch - panels.width)));
    }
}

#[cfg(test)]
mod tests {
    use crate::loops::text::parse;
    use crate::schedule::decide;
    use crate::target::Target;
    use crate::tuning::Records;

    /// Which kernels read panels of the constant, of a program that looks rows up and multiplies by all.
    fn in_panels(rows: i64, load: &str, others: &str) -> Vec<bool> {
        let program = parse(&format!(
            r#"loops {{
                const c0 "e": f32[{rows}, 64] = splat 0.5
                buffer b0 "i": i64[3] input 0
                buffer b1 "e": f32[{rows}, 64] constant c0
                buffer b2 "x": f32[3, 64] output 0
                buffer b3 "y": f32[3, {rows}] output 1
                site "a lookup"
                kernel "look" {{ for [i0 < 3, i1 < 64] {{ stage [] {{
                    t0: i64 = load b0[i0] t1: i64 = check t0 below [{rows}] site 0
                    t2: f32 = load b1{load} store b2[i0, i1] = t2 }} }} }}
                kernel "multiply" {{ matmul f32 b2 [0, 64, 1], b1 [0, 1, 64] over [i0 < 3, i1 < {rows}] depth [64] {{
                    t0: f32 = total store b3[i0, i1] = t0 }} }}
                {others}
            }}"#
        ));
        let program = program.unwrap_or_else(|error| panic!("{error}"));
        let ranges = crate::graph::ranges_of(&program.symbols);
        let schedule = decide(program, &ranges, &Target::cpu(&["x86-64-v3"]), &Records::default());
        schedule.choices.values().map(|choice| !choice.packed.is_empty()).collect()
    }

    #[test]
    fn a_table_is_stored_once_where_all_can_read_panels() {
        assert_eq!(in_panels(8192, "[t1, i1]", ""), [true, true]);
        assert_eq!(in_panels(8192, "[i0 + 7, i1]", ""), [true, true]);
        assert_eq!(in_panels(4095, "[t1, i1]", ""), [false, true], "a copy of less than a MiB costs nothing");
    }
}
