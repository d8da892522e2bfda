//! Batches of products of matrices of a few elements are element-wise on processors: no register tile is filled by one of them, while
//! lanes may run along all.

use super::rewrite::{everywhere, rewrite};
use crate::graph::{BinaryOp, Builder, Graph, Op, ShapeError, ValueId};
use crate::symbolic::Expr;
use crate::target::{JoinedAxes, Target};

/// Rows, columns and depth of such a matrix at most.
const SIDE: i64 = 4;
/// Matrices from which on lanes are filled.
const MATRICES: i64 = 16;

/// Makes sums of few products of batches of tiny matrices.
pub fn tiny_products(graph: Graph, target: &Target) -> Graph {
    if target.joined_axes() != JoinedAxes::Short {
        return graph;
    }
    everywhere(graph, &mut |graph, ranges| {
        rewrite(graph, ranges, &mut |rewriter, node| {
            let (Op::MatMul, &[a, b]) = (&node.op, &node.inputs[..]) else { return None };
            let builder = &mut rewriter.builder;
            let depth = depth_of_tiny(&builder.shape(a), &builder.shape(b))?;
            Some(vec![sum(builder, [a, b], depth).expect("elements of matrices are views of them")])
        });
    })
}

/// The depth of products of tiny matrices, if they are, and there are many.
fn depth_of_tiny(a: &[Expr], b: &[Expr]) -> Option<i64> {
    let (batch, [rows, depth]) = a.split_last_chunk()?;
    let is_tiny = |size: &Expr| size.as_int().is_some_and(|size| (1..=SIDE).contains(&size));
    let many = Expr::product(batch).as_int().is_none_or(|count| count >= MATRICES);
    (many && is_tiny(rows) && is_tiny(b.last()?)).then(|| depth.as_int().filter(|_| is_tiny(depth)))?
}

fn sum(builder: &mut Builder, [a, b]: [ValueId; 2], depth: i64) -> Result<ValueId, ShapeError> {
    let dtype = builder.dtype(a);
    let (mut shape, last) = (builder.shape(a), builder.rank(a) - 1);
    shape[last] = builder.shape(b)[last].clone();
    let mut total = None;
    for k in 0..depth {
        let element = |builder: &mut Builder, matrix: ValueId, along: usize| {
            let coords = (0..=last).map(|axis| if axis == along { Expr::int(k) } else { Expr::axis(axis) });
            let value = builder.view(matrix, &shape, coords.collect())?;
            Ok::<_, ShapeError>(builder.cast(value, dtype.compute()))
        };
        let (x, y) = (element(builder, a, last)?, element(builder, b, last - 1)?);
        let product = builder.binary(BinaryOp::Mul, x, y)?;
        total = Some(match total {
            Some(total) => builder.binary(BinaryOp::Add, total, product)?,
            None => product,
        });
    }
    let total = total.ok_or_else(|| ShapeError("a product of nothing".to_owned()))?;
    Ok(builder.cast(total, dtype))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::graph::text::parse;

    #[test]
    fn many_tiny_matrices_are_no_products() {
        let products = |sizes: &str| {
            let text = format!(
                "graph \"p\" {{ input %a \"a\": f32[{sizes}] %c: f32[{sizes}] = matmul %a, %a output %c }}"
            );
            let graph = tiny_products(parse(&text).expect("the text parses"), &Target::cpu(&["x86-64-v3"]));
            crate::graph::verify(&graph).expect("the graph is well formed");
            graph.nodes.iter().filter(|node| matches!(node.op, Op::MatMul)).count()
        };
        assert_eq!(["200, 3, 3", "2, 3, 3", "200, 5, 5"].map(products), [0, 1, 1]);
    }
}
