//! Which positions of two nests over the same outer axes touch the same elements.

use super::Refusal;
use super::merge::store_site;
use crate::loops::{Access, Axis, BufferId, Index, Nest, Stage};
use crate::symbolic::Expr;
use std::collections::BTreeSet;

/// Whether both load some element alike, so that one load serves both.
pub(super) fn reads_alike(a: &Nest, b: &Nest) -> bool {
    let loads = |nest: &Nest| -> Vec<Access> {
        let all = nest.stages.iter().flat_map(Stage::loads).map(|(access, _)| access);
        all.filter(|access| access.is_direct()).cloned().collect()
    };
    let (a, b) = (loads(a), loads(b));
    // Single elements and short vectors are no reason to fuse.
    a.iter().any(|x| x.coords.len() > 1 && b.iter().any(|y| x.buffer == y.buffer && x.coords == y.coords))
}

/// Every load of what the first nest stores must be of the same position of the outer axes.
pub(super) fn check_positions(first: &Nest, second: &Nest) -> Result<(), Refusal> {
    let produced: BTreeSet<BufferId> = first.stages.iter().flat_map(Stage::writes).collect();
    for stage in &second.stages {
        for (access, _) in stage.loads().filter(|(access, _)| produced.contains(&access.buffer)) {
            let site = store_site(first, access.buffer).ok_or(Refusal::UnclearProducer)?;
            let same_element =
                first.stages[site.stage].axes == stage.axes && site.access.is_same_element(access);
            if !same_element && !same_row(&first.axes, site.access, access) {
                return Err(Refusal::OtherPosition);
            }
        }
    }
    Ok(())
}

/// Whether each outer axis is, plainly, the same coordinate of the store and of the load.
fn same_row(axes: &[Axis], store: &Access, load: &Access) -> bool {
    axes.iter().all(|axis| {
        let plain = Index::Expr(Expr::sym(axis.symbol));
        store.coords.iter().zip(&load.coords).any(|(s, l)| *s == plain && *l == plain)
    })
}
