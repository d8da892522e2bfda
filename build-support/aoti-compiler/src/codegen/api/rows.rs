//! Parts of the tables: rows that others point to, and sizes that are computed together.

use crate::codegen::c_family::expr::{checked, symbol_name};
use crate::codegen::foreign::literal;
use crate::codegen::interface::{DimInterface, ValueInterface};
use crate::symbolic::{Expr, Symbol};
use indexmap::IndexSet;
use std::collections::BTreeSet;
use std::fmt::Write;

/// Tables that others point to, each once.
#[derive(Default)]
pub(super) struct Shared {
    /// Bounds of the dimensions of a tensor.
    dims: IndexSet<Vec<DimInterface>>,
    /// Numbers of the expressions of a tensor's sizes.
    numbers: IndexSet<Vec<i64>>,
}

impl Shared {
    pub(super) fn dims(&mut self, dims: &[DimInterface]) -> String {
        if dims.is_empty() { "nullptr".to_owned() } else { numbered("dims", &mut self.dims, dims.to_vec()) }
    }

    pub(super) fn numbers(&mut self, numbers: Vec<i64>) -> String {
        if numbers.iter().all(|number| *number == -1) {
            return "nullptr".to_owned();
        }
        numbered("numbers", &mut self.numbers, numbers)
    }

    pub(super) fn print(&self) -> String {
        let dim = |dim: &DimInterface| {
            let expression = dim.expression.as_deref().map_or_else(|| "nullptr".to_owned(), literal);
            format!("{{{expression}, {}, {}}}", dim.min, dim.max)
        };
        let mut out = String::new();
        for (index, dims) in self.dims.iter().enumerate() {
            let dims: Vec<String> = dims.iter().map(dim).collect();
            let _ = writeln!(out, "constexpr AotiDimInfo dims_{index}[] = {{{}}};", dims.join(", "));
        }
        for (index, numbers) in self.numbers.iter().enumerate() {
            let numbers: Vec<String> = numbers.iter().map(ToString::to_string).collect();
            let _ = writeln!(out, "constexpr int32_t numbers_{index}[] = {{{}}};", numbers.join(", "));
        }
        out
    }
}

fn numbered<T: std::hash::Hash + Eq>(kind: &str, set: &mut IndexSet<T>, item: T) -> String {
    format!("{kind}_{}", set.insert_full(item).0)
}

/// Expressions that are evaluated together.
#[derive(Default)]
pub(super) struct Expressions(IndexSet<Expr>);

impl Expressions {
    /// The number of an expression, or -1 where it is a constant.
    pub(super) fn number(&mut self, expr: &Expr) -> i64 {
        if expr.as_int().is_some() {
            return -1;
        }
        i64::try_from(self.0.insert_full(expr.clone()).0).expect("few")
    }

    /// The number of a bound, constants among them.
    pub(super) fn bound(&mut self, expr: &Expr) -> i64 {
        i64::try_from(self.0.insert_full(expr.clone()).0).expect("few")
    }

    pub(super) fn print(&self, name: &str) -> String {
        if self.0.is_empty() {
            return String::new();
        }
        let mut body = known(&self.0);
        for (index, expr) in self.0.iter().enumerate() {
            let _ = writeln!(body, "  values[{index}] = size({});", checked(expr));
        }
        format!("void {name}(const int64_t *symbols, int64_t *values) {{\n{body}}}\n\n")
    }

    /// The entry of the tables.
    pub(super) fn entry(&self, name: &str) -> String {
        if self.0.is_empty() { "{0, nullptr}".to_owned() } else { format!("{{{}, {name}}}", self.0.len()) }
    }
}

/// Declares the symbols that expressions mention.
pub(super) fn known<'e>(exprs: impl IntoIterator<Item = &'e Expr>) -> String {
    let mut symbols = BTreeSet::new();
    exprs.into_iter().for_each(|expr| expr.collect_symbols(&mut symbols));
    let line =
        |symbol: &Symbol| format!("  const i64 {} = symbols[{}];\n", symbol_name(*symbol), symbol.index);
    symbols.iter().map(line).collect()
}

/// A table, or a null pointer where it would be empty.
pub(in crate::codegen) fn table(out: &mut String, ty: &str, name: &str, rows: &[String]) -> String {
    if rows.is_empty() {
        return "nullptr".to_owned();
    }
    let _ = writeln!(out, "constexpr {ty}{name}[] = {{\n    {},\n}};", rows.join(",\n    "));
    name.to_owned()
}

/// The row of a tensor in a table.
pub(super) fn value_row(value: &ValueInterface, shared: &mut Shared) -> String {
    let (name, dtype, rank) = (literal(&value.name), value.element.code(), value.dims.len());
    format!("{{{name}, {dtype}, {rank}, {}}}", shared.dims(&value.dims))
}

/// A table of tables, unless all of them are empty.
pub(super) fn pointers(rows: &mut String, name: &str, lists: &[String]) -> String {
    if lists.iter().all(|list| list == "nullptr") {
        return "nullptr".to_owned();
    }
    table(rows, "const int32_t *", name, lists)
}

/// Distinct lines, in order, without those that are empty.
pub(super) fn lines_of<'a>(lines: impl Iterator<Item = &'a str>) -> String {
    let distinct: IndexSet<&str> = lines.filter(|line| !line.is_empty()).collect();
    distinct.into_iter().collect::<Vec<_>>().join("\n")
}
