//! What follows a matrix product row by row, once all of a row is there. Knows which elements are of which row.

use super::{Access, Axis, Effect, Index, MatMul, Nest, Stage};
use crate::graph::Combine;
use crate::symbolic::Expr;

impl MatMul {
    /// The batch axes and the row.
    pub fn row_axes(&self) -> &[Axis] {
        &self.axes[..self.axes.len() - 1]
    }

    /// Whether loops over the rows read of what the epilogue stores only their own row.
    pub fn keeps_to_rows(&self, rows: &Nest) -> bool {
        rows.stages.iter().flat_map(Stage::loads).all(|(load, _)| self.reads_own_row(load))
    }

    fn reads_own_row(&self, load: &Access) -> bool {
        let stores = self.epilogue.effects.iter().filter_map(|effect| match effect {
            Effect::Store { access, combine, .. } if access.buffer == load.buffer => Some((access, *combine)),
            Effect::Store { .. } | Effect::Accumulate { .. } => None,
        });
        let stores: Vec<_> = stores.collect();
        match stores.as_slice() {
            [] => true,
            [(store, Combine::Set)] if store.is_direct() && store.coords.len() == load.coords.len() => {
                store.coords.iter().zip(&load.coords).all(|(stored, loaded)| match stored {
                    Index::Expr(expr) => stored == loaded || self.is_of_column(expr),
                    Index::Term(_) => false,
                })
            }
            _ => false,
        }
    }

    /// Whether a coordinate is one for all rows.
    fn is_of_column(&self, coordinate: &Expr) -> bool {
        self.row_axes().iter().all(|axis| !coordinate.mentions(axis.symbol))
    }
}

#[cfg(test)]
mod tests {
    use crate::loops::text::{parse, print};
    use crate::loops::verify;

    /// What is wrong with a product that sums its rows, of which the sum reads `row`.
    fn findings(row: &str, axes: &str) -> Vec<String> {
        let text = format!(
            r#"loops "m" {{
  buffer b0 "x": f32[4, 8] input 0
  buffer b1 "w": f32[8, 16] input 1
  buffer b2 "h": f32[4, 16] output 0
  buffer b3 "y": f32[4] output 1
  inputs [b0, b1]
  graph_inputs [b0, b1]
  outputs [b2, b3]
  kernel "product" {{
    matmul f32 b0 [0, 8, 1], b1 [0, 16, 1] over [i0 < 4, i1 < 16] depth [8] {{
      t0: f32 = total
      store b2[i0, i1] = t0
    }}
    then for {axes} {{
      accumulator acc0: sum f32 in stage 0
      stage [i1 < 16] {{
        t0: f32 = load b2[{row}, i1]
        accumulate acc0 t0
      }}
      stage [] {{
        t0: f32 = result acc0
        store b3[i0] = t0
      }}
    }}
  }}
}}"#
        );
        let program = parse(&text).unwrap_or_else(|error| panic!("{error}"));
        assert_eq!(parse(&print(&program)).as_ref(), Ok(&program), "{}", print(&program));
        verify(&program)
    }

    #[test]
    fn a_row_epilogue_reads_its_own_row_alone() {
        assert_eq!(findings("i0", "[i0 < 4]"), Vec::<String>::new());
        assert_eq!(findings("-i0 + 3", "[i0 < 4]"), ["kernel `product`: its row epilogue reads another row"]);
        assert_eq!(findings("0", "[i0 < 4]"), ["kernel `product`: its row epilogue reads another row"]);
    }

    #[test]
    fn a_row_epilogue_runs_over_all_rows_of_its_product() {
        let wrong = "kernel `product`: its row epilogue does not run over its rows";
        assert_eq!(findings("i0", "[i0 < 3]"), [wrong]);
        assert_eq!(findings("i0", "[i0 < 4] serial"), [wrong]);
    }
}
