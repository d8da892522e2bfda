//! Storages and the windows that tensors are onto them: how mutation and aliasing are made explicit.
//!
//! Knows no operator; a view's window is found by applying its rule to a stand-in.

use super::run::{Walk, tensor_names};
use super::{Args, Outputs, Rule, RuleError};
use crate::aten::{Call, Output};
use crate::graph::{Combine, Coord, InputRole, Node, Op, TensorType, ValueId};
use crate::symbolic::{Expr, Symbol, SymbolKind};
use indexmap::IndexMap;
use std::collections::BTreeSet;

/// A tensor value of the program: a window onto a storage.
#[derive(Clone)]
pub(super) struct Window {
    storage: usize,
    /// Coordinates into the storage over the window's axes; `None` for the whole storage as it is.
    coords: Option<Vec<Expr>>,
    shape: Vec<Expr>,
    /// The value and the storage's version that it was read at.
    value: ValueId,
    version: usize,
}

/// What the windows look onto. `value` has the shape of the storage's first tensor.
pub(super) struct Storage {
    value: ValueId,
    version: usize,
    /// Whether the program also sees its bytes as other numbers, of another element type or conjugated, which are a storage of
    /// their own here.
    has_twin: bool,
}

impl Window {
    /// The same window, whose value is this one.
    pub(super) fn holding(&self, value: ValueId) -> Window {
        Window { value, ..self.clone() }
    }
}

impl Walk<'_> {
    pub(super) fn define(&mut self, name: &str, value: ValueId) {
        self.storages.push(Storage { value, version: 0, has_twin: false });
        let window = Window {
            storage: self.storages.len() - 1,
            coords: None,
            shape: self.cx.b.shape(value),
            value,
            version: 0,
        };
        self.windows.insert(name.to_owned(), window);
    }

    /// The current value of a tensor.
    pub(super) fn read(&mut self, name: &str) -> Result<ValueId, RuleError> {
        let Some(window) = self.windows.get(name).cloned() else {
            return Err(RuleError::Malformed(format!("tensor `{name}` is not defined")));
        };
        let storage = &self.storages[window.storage];
        if window.version == storage.version {
            return Ok(window.value);
        }
        let (base, version) = (storage.value, storage.version);
        let value = match &window.coords {
            None => base,
            Some(coords) if self.depends_on_data(coords) => {
                let (indices, coords) = self.checked(coords, &window.shape);
                self.cx.b.gather(base, &indices, coords, &window.shape)?
            }
            Some(coords) => self.cx.b.view(base, &window.shape, coords.clone())?,
        };
        self.windows.insert(name.to_owned(), Window { value, version, ..window });
        Ok(value)
    }

    /// Overwrites a tensor, and so every window onto its storage.
    pub(super) fn write(&mut self, name: &str, value: ValueId) -> Result<(), RuleError> {
        let Some(window) = self.windows.get(name).cloned() else {
            return Err(RuleError::Malformed(format!("tensor `{name}` is not defined")));
        };
        if self.storages[window.storage].has_twin {
            return Err(RuleError::unsupported(
                "writing to memory that is also seen as another element type or as conjugates",
            ));
        }
        let base = self.storages[window.storage].value;
        let dtype = self.cx.b.dtype(base);
        let value = self.cx.b.cast(value, dtype);
        let value = self.cx.b.expand(value, &window.shape)?;
        let (new_base, is_stored) = match &window.coords {
            None => (value, true),
            Some(coords) => {
                let (indices, coords) = self.checked(coords, &window.shape);
                let new_base = self.cx.b.scatter(base, value, &indices, coords, Combine::Set)?;
                // Where only a part of the window changes, the window is not made for itself.
                let stores = |node: &Node| node.inputs.get(1) == Some(&value);
                (new_base, self.cx.b.producer(new_base).is_some_and(stores))
            }
        };
        let storage = &mut self.storages[window.storage];
        storage.value = new_base;
        storage.version += 1;
        let version = if is_stored { storage.version } else { window.version };
        self.windows.insert(name.to_owned(), Window { value, version, ..window });
        Ok(())
    }

    /// A call's operand and its result are the same bytes, read as different numbers: what is written to one could not show in
    /// the other.
    pub(super) fn twins(&mut self, call: &Call) {
        let result = call.outputs.first().and_then(Output::tensor);
        let names = tensor_names(call).first().copied().into_iter().chain(result);
        for window in names.filter_map(|name| self.windows.get(name)) {
            self.storages[window.storage].has_twin = true;
        }
    }

    /// Whether coordinates depend on numbers read from data, about which nothing is known before the run.
    fn depends_on_data(&self, coords: &[Expr]) -> bool {
        coords.iter().any(|coord| self.is_from_data(coord))
    }

    fn is_from_data(&self, coord: &Expr) -> bool {
        let mut symbols = BTreeSet::new();
        coord.collect_symbols(&mut symbols);
        symbols.into_iter().any(|symbol| self.cx.b.is_data(symbol))
    }

    /// Coordinates for an access whose bounds are checked at run time where they depend on data.
    fn checked(&mut self, coords: &[Expr], shape: &[Expr]) -> (Vec<ValueId>, Vec<Coord>) {
        let mut indices = Vec::new();
        let mut result = Vec::new();
        for coord in coords {
            if self.is_from_data(coord) {
                result.push(Coord::Wrapped(indices.len()));
                indices.push(self.cx.b.index(coord.clone(), shape));
            } else {
                result.push(Coord::Expr(coord.clone()));
            }
        }
        (indices, result)
    }

    /// The windows that a view operator's outputs are, found by applying its rule to a stand-in for the operand.
    pub(super) fn window_onto_operand(
        &mut self,
        call: &Call,
        rule: Rule,
    ) -> Result<Option<Vec<Window>>, RuleError> {
        let names = tensor_names(call);
        // Other tensors, of `view_as` and the like, only lend their shapes.
        let Some((operand, others)) = names.split_first() else { return Ok(None) };
        let source = self.windows[*operand].clone();
        let dtype = self.cx.b.dtype(source.value);
        let mut scratch = self.cx.b.child("window");
        let mut ty = TensorType { dtype, shape: source.shape.clone() };
        // A view of complex numbers moves both parts alike: it is found for one, and the axis of parts stays the last.
        let parts = self.program.tensors.get(*operand).is_some_and(|meta| meta.is_complex);
        if parts {
            ty.shape.pop();
        }
        let stand_in = scratch.input("operand", ty, InputRole::User);
        let mut tensors = IndexMap::from([((*operand).to_owned(), stand_in)]);
        for other in others {
            let ty = self.cx.b.ty(self.windows[*other].value).clone();
            tensors.insert((*other).to_owned(), scratch.input(other, ty, InputRole::User));
        }
        std::mem::swap(&mut self.cx.b, &mut scratch);
        let args = Args { call, program: self.program, tensors: &tensors };
        let outputs = (rule.run)(&mut self.cx, &args);
        std::mem::swap(&mut self.cx.b, &mut scratch);
        let values = match outputs? {
            Outputs::One(value) => vec![value],
            Outputs::List(values) => values,
            Outputs::Many(values) => values.into_iter().flatten().collect(),
            Outputs::Int(_) | Outputs::Nothing => return Ok(None),
        };
        let mut windows = Vec::new();
        for value in values {
            let inner = if value == stand_in {
                None
            } else if let Some(Node { op: Op::View(coords), inputs, .. }) = scratch.producer(value)
                && inputs[0] == stand_in
            {
                Some(coords.clone())
            } else {
                // Not a window (such as `to` with another type): a tensor of its own.
                return Ok(None);
            };
            let mut shape = scratch.shape(value);
            let mut inner = inner;
            if parts {
                if let Some(coords) = &mut inner {
                    coords.push(Expr::axis(shape.len()));
                }
                shape.push(Expr::int(2));
            }
            windows.push(self.compose(&source, inner, shape));
        }
        Ok(Some(windows))
    }

    pub(super) fn compose(&self, source: &Window, inner: Option<Vec<Expr>>, shape: Vec<Expr>) -> Window {
        let coords = match (&source.coords, inner) {
            (outer, None) => outer.clone(),
            (None, Some(inner)) => Some(inner),
            (Some(outer), Some(inner)) => {
                let ranges = self.cx.b.axis_ranges(&shape);
                let replace = |symbol: Symbol| match symbol.kind {
                    SymbolKind::Axis => inner.get(symbol.index as usize).cloned(),
                    SymbolKind::Size => None,
                };
                Some(outer.iter().map(|coord| coord.substitute(&replace, &ranges)).collect())
            }
        };
        Window { storage: source.storage, coords, shape, value: source.value, version: source.version }
    }
}
