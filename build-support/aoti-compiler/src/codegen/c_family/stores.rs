//! Stores of a stage's values as C++ on lanes, and accesses of rows that have been turned.

use super::expr::{scalar, symbol_name};
use super::operations::combined;
use super::terms::Context;
use crate::graph::Combine;
use crate::loops::Access;
use crate::symbolic::Symbol;

impl Context<'_> {
    pub(super) fn store(&self, access: &Access, value: &str, combine: Combine, varying: &[bool]) -> String {
        let pointer = self.parameters.buffer(access.buffer);
        let dtype = self.parameters.dtype(access.buffer);
        let Some(vector) = self.vector else {
            let element = self.element(pointer, access);
            let value = combined(combine, &format!("load(Full<1>{{}}, {element})"), value, dtype);
            return format!("store(Full<1>{{}}, {element}, {value});");
        };
        if let Some(row) = self.turned_row(access, vector) {
            return format!("store(lanes, {row}, {value});");
        }
        let steady = access.indirect.iter().all(|(term, _)| !varying[*term]);
        if let Some((step, _)) = access.offset.affine_in(vector).filter(|_| steady) {
            let element = self.element(pointer, access);
            return if step.is(1) {
                let element = self.whole(access, vector, element);
                let value = combined(combine, &format!("load(lanes, {element})"), value, dtype);
                format!("store(lanes, {element}, {value});")
            } else {
                let step = scalar(&step);
                let value =
                    combined(combine, &format!("load_strided(lanes, {element}, {step})"), value, dtype);
                format!("store_strided(lanes, {element}, {step}, {value});")
            };
        }
        let (base, index) = self.lane_address(access, varying, vector);
        let value = combined(combine, &format!("gather(lanes, {base}, {index})"), value, dtype);
        format!("scatter(lanes, {base}, {index}, {value});")
    }

    /// Where lane 0 finds its element if the row that has it has been turned.
    pub(super) fn turned_row(&self, access: &Access, vector: Symbol) -> Option<String> {
        let (_, row) = self.turned.iter().find(|(turned, _)| turned == access)?;
        Some(format!("{row} + {}", symbol_name(vector)))
    }
}
