//! Puts loops over the rows of a matrix product behind it: they run where a row has just been computed, and are no kernel
//! of their own.

use super::Refusal;
use super::axes::{rebuild, symbol};
use super::fuse::may_join;
use crate::kernels::nest::cpu::suits_rows;
use crate::loops::{Axis, BufferId, Kernel, KernelKind, Nest, Stage};
use crate::symbolic::{Expr, Ranges, Symbol};
use crate::target::Target;
use std::collections::BTreeMap;

/// The product with a consumer of its rows as row epilogue.
pub(super) fn behind(
    producer: &Kernel,
    consumer: &Nest,
    ranges: &dyn Ranges,
    target: &Target,
) -> Result<KernelKind, Refusal> {
    let (KernelKind::MatMul(matmul), Target::Cpu(target)) = (&producer.kind, target) else {
        return Err(Refusal::NothingShared);
    };
    let produced: Vec<BufferId> = matmul.epilogue.writes().collect();
    let shares = consumer.stages.iter().flat_map(Stage::reads).any(|buffer| produced.contains(&buffer));
    if !shares || matmul.row_epilogue.is_some() {
        return Err(Refusal::NothingShared);
    }
    may_join(producer, consumer)?;
    let rows = along(consumer, matmul.row_axes(), ranges).ok_or(Refusal::OtherSpace)?;
    if !matmul.keeps_to_rows(&rows) {
        return Err(Refusal::OtherPosition);
    }
    if !suits_rows(&rows, matmul, target) {
        return Err(Refusal::NotByRow);
    }
    let mut matmul = matmul.clone();
    matmul.row_epilogue = Some(rows);
    Ok(KernelKind::MatMul(matmul))
}

/// A nest whose outer axes walk through the same positions in the same order, over these axes instead.
fn along(nest: &Nest, axes: &[Axis], ranges: &dyn Ranges) -> Option<Nest> {
    let map = correspond(&nest.axes, axes, ranges)?;
    let (mut inner, mut maps) = (Vec::new(), Vec::new());
    for stage in &nest.stages {
        let numbered = stage.axes.iter().enumerate();
        let own: Vec<Axis> = numbered
            .map(|(k, axis)| Axis { symbol: symbol(axes.len() + k), extent: axis.extent.clone() })
            .collect();
        let renamed = stage.axes.iter().zip(&own).map(|(old, new)| (old.symbol, Expr::sym(new.symbol)));
        maps.push(map.clone().into_iter().chain(renamed).collect());
        inner.push(own);
    }
    let mut nest = nest.clone();
    rebuild(&mut nest, axes.to_vec(), inner, &maps, ranges);
    Some(nest)
}

/// Positions along some axes from those along others, where both count the same in row-major order.
fn correspond(from: &[Axis], to: &[Axis], ranges: &dyn Ranges) -> Option<BTreeMap<Symbol, Expr>> {
    let several = |axes: &[Axis]| axes.iter().filter(|axis| !axis.extent.is(1)).cloned().collect::<Vec<_>>();
    let (own, wanted) = (several(from), several(to));
    let mut map: BTreeMap<Symbol, Expr> =
        from.iter().filter(|axis| axis.extent.is(1)).map(|axis| (axis.symbol, Expr::int(0))).collect();
    let extents = |axes: &[Axis]| axes.iter().map(|axis| axis.extent.clone()).collect::<Vec<_>>();
    if extents(&own) == extents(&wanted) {
        map.extend(own.iter().zip(&wanted).map(|(own, wanted)| (own.symbol, Expr::sym(wanted.symbol))));
        return Some(map);
    }
    let ([wanted], true) = (wanted.as_slice(), !own.is_empty()) else { return None };
    if Expr::product(extents(&own).iter()) != wanted.extent {
        return None;
    }
    let whole = Expr::sym(wanted.symbol);
    for (index, axis) in own.iter().enumerate() {
        let stride = Expr::product(own[index + 1..].iter().map(|axis| &axis.extent));
        let quotient = whole.floor_div_in(&stride, ranges);
        let position = if index == 0 { quotient } else { quotient.modulo_in(&axis.extent, ranges) };
        map.insert(axis.symbol, position);
    }
    Some(map)
}
