//! The metadata of the program's values: element types, sizes and strides of tensors, values of integers.

use super::expr::{Scope, Tree, parse};
use super::import::Importer;
use super::schema::{SymInt, TensorMeta as RawMeta};
use super::values;
use crate::diagnostic::Code;
use crate::frontend::torch::aten::TensorMeta;
use crate::graph::Origin;
use crate::symbolic::Expr;

/// Bytes of a tensor.
const MAX_BYTES: i64 = 1 << 47;

impl Importer {
    /// A size or another integer; `what` names it.
    pub(super) fn size(&mut self, size: &SymInt, what: &str, at: &Origin) -> Option<Expr> {
        let value = match size {
            SymInt::Int(value) => return Some(Expr::int(*value)),
            SymInt::Expr(expr) => self
                .tree(&expr.expr_str)
                .and_then(|tree| tree.integer(&mut self.symbols))
                .map_err(|reason| format!("{what} is `{}`: {reason}", expr.expr_str)),
            SymInt::Unknown(key) => Err(format!("{what} is of kind `{key}`, which is not known")),
        };
        value.map_err(|message| self.report(Code::Schema, message, at)).ok()
    }

    /// The symbol of an integer that is no expression over others, such as a rounded number: a call computes it.
    pub(super) fn computed(&mut self, size: &SymInt) -> Option<Expr> {
        let SymInt::Expr(expr) = size else { return None };
        let tree = parse(&expr.expr_str).unwrap_or_else(|_| unread(&expr.expr_str));
        let known = tree.integer(&mut self.symbols);
        known.is_err().then(|| self.symbols.declare_computed(tree))
    }

    /// The expression that a text is, or that stands for it.
    fn tree(&self, text: &str) -> Result<Tree, String> {
        parse(text).or_else(|reason| {
            let tree = unread(text);
            if self.symbols.computed(&tree).is_some() { Ok(tree) } else { Err(reason) }
        })
    }

    fn sizes(&mut self, sizes: &[SymInt], what: &str, at: &Origin) -> Option<Vec<Expr>> {
        sizes.iter().map(|size| self.size(size, what, at)).collect()
    }

    /// The description of a tensor; `None` where it was refused.
    pub(super) fn meta(&mut self, name: &str, meta: &RawMeta, at: &Origin) -> Option<TensorMeta> {
        let (dtype, is_complex) = match values::element(meta.dtype) {
            Ok(element) => element,
            Err(dtype) => {
                self.report(Code::DType, format!("the value `{name}` is a tensor of `{dtype}`"), at);
                return None;
            }
        };
        if meta.layout != values::STRIDED {
            let layout = values::layout(meta.layout).unwrap_or("unknown");
            self.report(
                Code::DType,
                format!("the value `{name}` is not dense: its layout is `{layout}`"),
                at,
            );
            return None;
        }
        if meta.sizes.len() > values::MAX_RANK || meta.sizes.len() != meta.strides.len() {
            let (sizes, strides) = (meta.sizes.len(), meta.strides.len());
            self.report(Code::Schema, format!("`{name}` has {sizes} sizes and {strides} strides"), at);
            return None;
        }
        let sizes = self.sizes(&meta.sizes, &format!("a size of `{name}`"), at)?;
        let strides = self.sizes(&meta.strides, &format!("a stride of `{name}`"), at)?;
        let storage_offset = self.size(&meta.storage_offset, &format!("the offset of `{name}`"), at)?;
        // Symbols count with their smallest values, so that every run would overflow.
        let bytes = sizes.iter().try_fold(dtype.size() as i64, |all, size| {
            let size = size.interval(self.symbols.ranges());
            let size = if size.max < 0 { return None } else { size.min.max(1) };
            all.checked_mul(size).filter(|bytes| *bytes <= MAX_BYTES)
        });
        if bytes.is_none() {
            self.report(
                Code::Size,
                format!("the size of `{name}`, {sizes:?} of {dtype}, is out of range"),
                at,
            );
            return None;
        }
        Some(TensorMeta { dtype, is_complex, sizes, strides, storage_offset })
    }
}

/// Stands for a text that is not understood, which a call may compute all the same.
fn unread(text: &str) -> Tree {
    Tree::Call(text.to_owned(), Vec::new())
}
