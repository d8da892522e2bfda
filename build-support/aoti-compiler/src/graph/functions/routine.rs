//! What is computed of one matrix at a time.

use crate::symbolic::Expr;

table! {
    /// A routine of dense linear algebra on matrices that are the last two axes of its operands; in `f32` or `f64`,
    /// with integers as `i64`. `m` and `n` are rows and columns of the operand that [`Routine::matrix`] tells.
    Routine {
        /// `[m, n]` to L (below the diagonal, of ones) and U in one matrix, pivots (rows from 1 on that each step
        /// exchanged with its own), and 0 or the number from 1 on of the first pivot that is zero.
        Lu "lu",
        /// The lower triangle of `[n, n]` to L, and 0 or the order of the first minor that is not positive.
        Cholesky "cholesky",
        /// Pivots `[m]` as `Lu` gives them and `[m, n]` to that with rows exchanged, one pivot after the other.
        Exchange "exchange_rows",
        /// Lower triangle of `[m, m]` and B `[m, n]` to the X of A X = B.
        SolveLower "solve_lower",
        /// The same of the upper triangle.
        SolveUpper "solve_upper",
        /// The lower triangle of a symmetric `[n, n]` to L and D as LAPACK's `sytrf` stores them, pivots as there, and 0 or the
        /// number from 1 on of the first block of D that is zero.
        Ldl "ldl",
        /// What `Ldl` gave, its pivots, and B `[m, n]` to the X of A X = B.
        LdlSolve "ldl_solve",
        /// `[m, n]` to R and, below it, the vectors of reflections, and their factors, as LAPACK's `geqrf` stores them.
        Qr "qr",
        /// Vectors of reflections `[m, n]` as `Qr` gives them and their factors `[n]` to the first n columns of their product;
        /// m is not less than n.
        Reflections "reflections",
        /// The lower triangle of a symmetric `[n, n]` to eigenvalues, ascending, and eigenvectors as columns.
        Eigh "eigh",
        /// `[m, n]`, m not less than n, to left singular vectors `[m, n]`, singular values, descending, and right singular
        /// vectors `[n, n]` as columns.
        Svd "svd",
        /// `[n, n]` to eigenvalues `[n, 2]` and eigenvectors as columns `[n, n, 2]`, complex numbers as pairs.
        Eig "eig",
        /// `[m, n]`, n not 0, to the position of the most frequent number of each row: sorted by what is less alone, the last one
        /// of the first of the longest runs of equal numbers.
        Mode "mode",
    }
}

/// A size of an operand or a result.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Side {
    /// `m`.
    Rows,
    /// `n`.
    Columns,
    /// The smaller of both.
    Least,
    /// 2.
    Two,
}

/// An operand or a result behind the axes that count matrices.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Part {
    /// Its axes.
    pub sides: &'static [Side],
    /// Of `i64`, not of the matrix's type.
    pub is_integer: bool,
}

impl Part {
    /// Its sizes, behind those that count matrices.
    pub fn shape(&self, leading: &[Expr], m: &Expr, n: &Expr) -> Vec<Expr> {
        let size = |side: &Side| match side {
            Side::Rows => m.clone(),
            Side::Columns => n.clone(),
            Side::Least => m.minimum(n),
            Side::Two => Expr::int(2),
        };
        leading.iter().cloned().chain(self.sides.iter().map(size)).collect()
    }
}

const fn real(sides: &'static [Side]) -> Part {
    Part { sides, is_integer: false }
}

const fn integer(sides: &'static [Side]) -> Part {
    Part { sides, is_integer: true }
}

impl Routine {
    /// Its operands.
    pub fn operands(self) -> &'static [Part] {
        use Side::{Columns, Rows};
        const MATRIX: Part = real(&[Rows, Columns]);
        const SQUARE: Part = real(&[Rows, Rows]);
        match self {
            Routine::Lu | Routine::Qr | Routine::Svd | Routine::Mode => &[MATRIX],
            Routine::Cholesky | Routine::Ldl | Routine::Eigh | Routine::Eig => const { &[MATRIX] },
            Routine::Exchange => const { &[integer(&[Rows]), MATRIX] },
            Routine::SolveLower | Routine::SolveUpper => const { &[SQUARE, MATRIX] },
            Routine::LdlSolve => const { &[SQUARE, integer(&[Rows]), MATRIX] },
            Routine::Reflections => const { &[MATRIX, real(&[Columns])] },
        }
    }

    /// Its results.
    pub fn results(self) -> &'static [Part] {
        use Side::{Columns, Least, Rows, Two};
        const MATRIX: Part = real(&[Rows, Columns]);
        match self {
            Routine::Lu => const { &[MATRIX, integer(&[Least]), integer(&[])] },
            Routine::Cholesky => const { &[MATRIX, integer(&[])] },
            Routine::Exchange
            | Routine::SolveLower
            | Routine::SolveUpper
            | Routine::LdlSolve
            | Routine::Reflections => &[MATRIX],
            Routine::Ldl => const { &[MATRIX, integer(&[Columns]), integer(&[])] },
            Routine::Qr => const { &[MATRIX, real(&[Least])] },
            Routine::Eigh => const { &[real(&[Columns]), MATRIX] },
            Routine::Svd => const { &[MATRIX, real(&[Columns]), real(&[Columns, Columns])] },
            Routine::Eig => const { &[real(&[Columns, Two]), real(&[Rows, Columns, Two])] },
            Routine::Mode => const { &[integer(&[Rows])] },
        }
    }

    /// Which operand is `[m, n]`.
    pub fn matrix(self) -> usize {
        match self {
            Routine::Exchange | Routine::SolveLower | Routine::SolveUpper => 1,
            Routine::LdlSolve => 2,
            Routine::Lu
            | Routine::Cholesky
            | Routine::Ldl
            | Routine::Qr
            | Routine::Reflections
            | Routine::Eigh
            | Routine::Svd
            | Routine::Eig
            | Routine::Mode => 0,
        }
    }

    /// Whether `m` must be `n`.
    pub fn is_of_squares(self) -> bool {
        matches!(self, Routine::Cholesky | Routine::Ldl | Routine::Eigh | Routine::Eig)
    }
}
