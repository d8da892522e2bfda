//! How large the results of custom operators are: as the program states, or as the function says, which is checked.

use super::super::rules::RuleError;
use super::super::rules::support::length;
use super::run::Walk;
use crate::dtype::DType;
use crate::frontend::torch::aten::Arg;
use crate::graph::{Condition, ExternCall, IntBinary, LARGEST_SIZE, Relation, TensorType, ValueId};
use crate::passes::bounds::of_conditions;
use crate::symbolic::{Expr, Node, Symbol};
use std::collections::BTreeSet;

impl Walk<'_> {
    /// Results of a function that says how large they are. It gets memory for the largest that the program states, and fills
    /// the first so many positions along each axis.
    pub(crate) fn of_decided_sizes(
        &mut self,
        called: ExternCall,
        operands: &[ValueId],
        (names, source): (&[&str], &str),
    ) -> Result<Vec<ValueId>, RuleError> {
        let stated = names.iter().map(|name| self.stated(name)).collect::<Result<Vec<_>, _>>()?;
        let mut types = Vec::new();
        for own in &stated {
            let shape = own.shape.iter().map(|size| self.largest(size)).collect::<Result<_, _>>()?;
            types.push(TensorType { dtype: own.dtype, shape });
            types.push(TensorType { dtype: DType::I64, shape: vec![Expr::int(length(own.shape.len()))] });
        }
        let place = if source.is_empty() { String::new() } else { format!(" at {source}") };
        let operator = format!("operator `{}`{place}", called.operator);
        let largest: Vec<Vec<Expr>> = types.iter().step_by(2).map(|own| own.shape.clone()).collect();
        let given = self.cx.b.extern_call(called, operands, types);
        let mut sizes = Vec::new();
        for (result, (own, pair)) in stated.iter().zip(given.chunks_exact(2)).enumerate() {
            for (axis, size) in own.shape.iter().enumerate() {
                let value = self.cx.b.pick(pair[1], 0, &Expr::int(length(axis)))?;
                sizes.push((
                    size,
                    value,
                    largest[result][axis].clone(),
                    format!("axis {axis} of result {result}"),
                ));
            }
        }
        // What is a symbol by itself is read, so that others can be compared with what follows from it.
        sizes.sort_by_key(|(size, ..)| !matches!(size.node(), Node::Sym(_)));
        for (size, value, largest, axis) in sizes {
            self.decided(size, value, &largest, &[axis, operator.clone()])?;
        }
        let mut results = Vec::new();
        for (own, pair) in stated.iter().zip(given.chunks_exact(2)) {
            let mut result = pair[0];
            for (axis, size) in own.shape.iter().enumerate() {
                result = self.cx.b.slice(result, axis, &Expr::int(0), size, 1)?;
            }
            results.push(result);
        }
        Ok(results)
    }

    /// A size that a function says is one that the program allows, and known from here on.
    fn decided(
        &mut self,
        size: &Expr,
        value: ValueId,
        largest: &Expr,
        [axis, operator]: &[String; 2],
    ) -> Result<(), RuleError> {
        let cx = &mut self.cx;
        if let Node::Sym(symbol) = size.node()
            && cx.b.is_data(*symbol)
            && !cx.b.is_read(*symbol)
        {
            let least = cx.with_number(Relation::Ge, value, 0i64)?;
            let most = cx.b.index(largest.clone(), &[]);
            let most = cx.binary(Relation::Le, value, most)?;
            let within = cx.binary(IntBinary::And, least, most)?;
            cx.b.assert(within, &format!("the size of {axis} is outside of 0 to {largest}: {operator}"))?;
            cx.b.read(value, *symbol)?;
            if largest.as_int().is_none() {
                let condition = Condition::compare(size.clone(), Relation::Le, largest.clone());
                cx.b.require(condition, "a size that cannot be larger");
            }
            return Ok(());
        }
        let stated = cx.b.index(size.clone(), &[]);
        let same = cx.binary(Relation::Eq, value, stated)?;
        Ok(cx.b.assert(same, &format!("the size of {axis} is not the program's: {operator}"))?)
    }

    /// The largest that a size of a result can be.
    fn largest(&self, size: &Expr) -> Result<Expr, RuleError> {
        if self.unread(std::slice::from_ref(size)).is_none() {
            return Ok(size.clone());
        }
        let most = size.interval(self.cx.b.ranges()).max;
        let stated = (most <= LARGEST_SIZE).then(|| Expr::int(most));
        // A size of an input is less than the largest that it can have.
        self.asserted(size).or(stated).ok_or_else(|| {
            RuleError::unsupported(format!(
                "the function decides the size `{}` of its result, which has no bound in the program; state one with \
                 `torch._check(size <= bound)`, where the bound is a number or a size of an input",
                self.size_name(size)
            ))
        })
    }

    /// What a size never exceeds, by what the program asserts of sizes once they are known.
    fn asserted(&self, size: &Expr) -> Option<Expr> {
        let Node::Sym(symbol) = size.node() else { return None };
        let asserted = self.program.calls.iter().filter(|call| call.target == "aten._assert_scalar.default");
        let conditions = asserted
            .flat_map(|call| &call.args)
            .filter_map(|(_, arg)| if let Arg::Condition(condition) = arg { Some(condition) } else { None });
        of_conditions(*symbol, conditions, &self.program.symbols)
    }

    /// A symbol of these sizes whose value is not known yet.
    fn unread(&self, sizes: &[Expr]) -> Option<Symbol> {
        let mut symbols = BTreeSet::new();
        sizes.iter().for_each(|size| size.collect_symbols(&mut symbols));
        symbols.into_iter().find(|symbol| self.cx.b.is_data(*symbol) && !self.cx.b.is_read(*symbol))
    }

    /// The name of the symbol in a size that is not known yet.
    fn size_name(&self, size: &Expr) -> &str {
        let symbol = self.unread(std::slice::from_ref(size));
        let info = symbol.and_then(|symbol| self.program.symbols.get(symbol.index as usize));
        info.map_or("", |info| info.name.as_str())
    }

    /// The type that the program states for a result.
    fn stated(&self, name: &str) -> Result<TensorType, RuleError> {
        let meta = self.program.tensors.get(name);
        let meta =
            meta.ok_or_else(|| RuleError::Malformed(format!("the result `{name}` is not described")))?;
        Ok(TensorType { dtype: meta.dtype, shape: meta.sizes.clone() })
    }

    /// The same of a function that does not say how large it is.
    pub(crate) fn type_of(&self, name: &str) -> Result<TensorType, RuleError> {
        let own = self.stated(name)?;
        if let Some(size) = own.shape.iter().find(|size| self.unread(std::slice::from_ref(size)).is_some()) {
            return Err(RuleError::unsupported(format!(
                "the function would decide the size `{}` of its result; state sizes that follow from those of its operands, \
                 or declare the operator with `decides-sizes = true`",
                self.size_name(size)
            )));
        }
        Ok(own)
    }
}
