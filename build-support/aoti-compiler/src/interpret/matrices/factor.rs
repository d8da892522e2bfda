//! Factorisations by elimination, and solvers: the twin of `include/aoti/linalg_factor.h`.

use super::{Real, Results};

/// Rows are exchanged so that no multiplier is larger than one.
pub(super) fn lu<T: Real>(m: usize, n: usize, a: &[T]) -> Results<T> {
    let mut a = a.to_vec();
    let (mut pivots, mut info) = (Vec::new(), 0);
    for j in 0..m.min(n) {
        let mut p = j;
        for i in j + 1..m {
            if a[i * n + j].magnitude() > a[p * n + j].magnitude() {
                p = i;
            }
        }
        pivots.push(p as i64 + 1);
        if a[p * n + j] == T::of(0.0) {
            if info == 0 {
                info = j as i64 + 1;
            }
            continue;
        }
        if p != j {
            (0..n).for_each(|c| a.swap(p * n + c, j * n + c));
        }
        for i in j + 1..m {
            let l = a[i * n + j] / a[j * n + j];
            a[i * n + j] = l;
            for c in j + 1..n {
                a[i * n + c] = a[i * n + c] - l * a[j * n + c];
            }
        }
    }
    Results { reals: vec![a], integers: vec![pivots, vec![info]] }
}

/// Of the lower triangle, column by column. What is left where it ends early is as LAPACK leaves it; below an infinite pivot there is
/// NaN, as below those of PyTorch.
pub(super) fn cholesky<T: Real>(n: usize, a: &[T]) -> Results<T> {
    let mut l = a.to_vec();
    (0..n).for_each(|i| l[i * n + i + 1..(i + 1) * n].fill(T::of(0.0)));
    let done = |l, info| Results { reals: vec![l], integers: vec![vec![info]] };
    for j in 0..n {
        let mut root = T::of(0.0);
        for i in j..n {
            let mut sum = l[i * n + j];
            for k in 0..j {
                sum = sum - l[i * n + k] * l[j * n + k];
            }
            if i > j {
                l[i * n + j] = sum / root;
            } else if sum > T::of(0.0) {
                root = sum.root();
                l[j * n + j] = root;
                if root == root + root {
                    root = root * T::of(0.0);
                }
            } else {
                l[j * n + j] = sum;
                return done(l, j as i64 + 1);
            }
        }
    }
    done(l, 0)
}

/// Rows are exchanged, one pivot after the other; those outside the matrix exchange nothing.
pub(super) fn exchange<T: Real>(m: usize, n: usize, pivots: &[i64], b: &[T]) -> Results<T> {
    let mut x = b.to_vec();
    for (i, pivot) in pivots.iter().enumerate() {
        let other = usize::try_from(pivot - 1).ok().filter(|j| *j < m && *j != i);
        if let Some(j) = other {
            (0..n).for_each(|c| x.swap(i * n + c, j * n + c));
        }
    }
    Results { reals: vec![x], integers: vec![] }
}

/// X of A X = B with a lower triangular A of m rows and n columns of B.
pub(super) fn solve_lower<T: Real>(m: usize, n: usize, a: &[T], b: &[T]) -> Results<T> {
    let mut x = b.to_vec();
    for i in 0..m {
        for k in 0..i {
            subtract(&mut x, n, i, k, a[i * m + k]);
        }
        (0..n).for_each(|c| x[i * n + c] = x[i * n + c] / a[i * m + i]);
    }
    Results { reals: vec![x], integers: vec![] }
}

pub(super) fn solve_upper<T: Real>(m: usize, n: usize, a: &[T], b: &[T]) -> Results<T> {
    let mut x = b.to_vec();
    for i in (0..m).rev() {
        for k in i + 1..m {
            subtract(&mut x, n, i, k, a[i * m + k]);
        }
        (0..n).for_each(|c| x[i * n + c] = x[i * n + c] / a[i * m + i]);
    }
    Results { reals: vec![x], integers: vec![] }
}

/// Takes `factor` times row `k` from row `i`.
fn subtract<T: Real>(x: &mut [T], n: usize, i: usize, k: usize, factor: T) {
    for c in 0..n {
        x[i * n + c] = x[i * n + c] - factor * x[k * n + c];
    }
}

/// The pivot of a step: its row, and how many rows its block has.
fn bunch_kaufman<T: Real>(n: usize, k: usize, a: &[T]) -> Option<(usize, usize)> {
    let alpha = T::of(0.640_388_203_202_207_6);
    let (mut widest, mut column) = (k, T::of(0.0));
    for i in k + 1..n {
        if a[i * n + k].magnitude() > column {
            (widest, column) = (i, a[i * n + k].magnitude());
        }
    }
    let diagonal = a[k * n + k].magnitude();
    if diagonal == T::of(0.0) && column == T::of(0.0) {
        return None;
    }
    if diagonal < alpha * column {
        let mut row = T::of(0.0);
        let left = (k..widest).map(|j| widest * n + j);
        for at in left.chain((widest + 1..n).map(|i| i * n + widest)) {
            if a[at].magnitude() > row {
                row = a[at].magnitude();
            }
        }
        if diagonal < alpha * column * (column / row) {
            let steps = if a[widest * n + widest].magnitude() < alpha * row { 2 } else { 1 };
            return Some((widest, steps));
        }
    }
    Some((k, 1))
}

/// Of the lower triangle, as LAPACK stores it.
pub(super) fn ldl<T: Real>(n: usize, a: &[T]) -> Results<T> {
    let mut a: Vec<T> =
        (0..n * n).map(|at| if at % n.max(1) <= at / n.max(1) { a[at] } else { T::of(0.0) }).collect();
    let (mut pivots, mut info, mut k) = (vec![0i64; n], 0, 0);
    while k < n {
        let Some((p, steps)) = bunch_kaufman(n, k, &a) else {
            if info == 0 {
                info = k as i64 + 1;
            }
            pivots[k] = k as i64 + 1;
            k += 1;
            continue;
        };
        let last = k + steps - 1;
        if p != last {
            (p + 1..n).for_each(|i| a.swap(i * n + last, i * n + p));
            (last + 1..p).for_each(|j| a.swap(j * n + last, p * n + j));
            a.swap(last * n + last, p * n + p);
            if steps == 2 {
                a.swap((k + 1) * n + k, p * n + k);
            }
        }
        if steps == 1 {
            eliminate_one(n, k, &mut a);
            pivots[k] = p as i64 + 1;
        } else {
            eliminate_two(n, k, &mut a);
            pivots[k] = -(p as i64 + 1);
            pivots[k + 1] = pivots[k];
        }
        k += steps;
    }
    Results { reals: vec![a], integers: vec![pivots, vec![info]] }
}

fn eliminate_one<T: Real>(n: usize, k: usize, a: &mut [T]) {
    let d = T::of(1.0) / a[k * n + k];
    for j in k + 1..n {
        let l = d * a[j * n + k];
        for i in j..n {
            a[i * n + j] = a[i * n + j] - l * a[i * n + k];
        }
    }
    (k + 1..n).for_each(|i| a[i * n + k] = a[i * n + k] * d);
}

fn eliminate_two<T: Real>(n: usize, k: usize, a: &mut [T]) {
    let below = a[(k + 1) * n + k];
    let (d1, d2) = (a[(k + 1) * n + k + 1] / below, a[k * n + k] / below);
    let scale = T::of(1.0) / (d1 * d2 - T::of(1.0)) / below;
    for j in k + 2..n {
        let l1 = scale * (d1 * a[j * n + k] - a[j * n + k + 1]);
        let l2 = scale * (d2 * a[j * n + k + 1] - a[j * n + k]);
        for i in j..n {
            a[i * n + j] = a[i * n + j] - a[i * n + k] * l1 - a[i * n + k + 1] * l2;
        }
        (a[j * n + k], a[j * n + k + 1]) = (l1, l2);
    }
}

/// X of A X = B with an A that [`ldl`] has factored.
pub(super) fn ldl_solve<T: Real>(m: usize, n: usize, a: &[T], pivots: &[i64], b: &[T]) -> Results<T> {
    let mut x = b.to_vec();
    // Pivots are the caller's: those outside the matrix exchange nothing.
    let exchange = |x: &mut [T], i: usize, pivot: i64| {
        let other = usize::try_from(pivot.abs() - 1).ok().filter(|j| *j < m && *j != i);
        if let Some(j) = other {
            (0..n).for_each(|c| x.swap(i * n + c, j * n + c));
        }
    };
    let mut k = 0;
    while k < m {
        if pivots[k] > 0 || k + 1 == m {
            exchange(&mut x, k, if pivots[k] > 0 { pivots[k] } else { k as i64 + 1 });
            (k + 1..m).for_each(|i| subtract(&mut x, n, i, k, a[i * m + k]));
            (0..n).for_each(|c| x[k * n + c] = x[k * n + c] / a[k * m + k]);
            k += 1;
            continue;
        }
        exchange(&mut x, k + 1, pivots[k]);
        for i in k + 2..m {
            subtract(&mut x, n, i, k, a[i * m + k]);
            subtract(&mut x, n, i, k + 1, a[i * m + k + 1]);
        }
        let below = a[(k + 1) * m + k];
        let (d1, d2) = (a[k * m + k] / below, a[(k + 1) * m + k + 1] / below);
        let whole = d1 * d2 - T::of(1.0);
        for c in 0..n {
            let (b1, b2) = (x[k * n + c] / below, x[(k + 1) * n + c] / below);
            x[k * n + c] = (d2 * b1 - b2) / whole;
            x[(k + 1) * n + c] = (d1 * b2 - b1) / whole;
        }
        k += 2;
    }
    let gather = |x: &mut [T], to: usize, from: usize| {
        (from..m).for_each(|i| subtract(x, n, to, i, a[i * m + to]));
    };
    let mut left = m;
    while left > 0 {
        let k = left - 1;
        gather(&mut x, k, k + 1);
        if pivots[k] > 0 || k == 0 {
            exchange(&mut x, k, if pivots[k] > 0 { pivots[k] } else { k as i64 + 1 });
            left -= 1;
            continue;
        }
        gather(&mut x, k - 1, k + 1);
        exchange(&mut x, k, pivots[k]);
        left -= 2;
    }
    Results { reals: vec![x], integers: vec![] }
}

#[cfg(test)]
mod tests {
    use super::cholesky;

    #[test]
    fn what_has_no_factor_is_left_as_lapack_leaves_it() {
        let (inf, nan) = (f32::INFINITY, f32::NAN);
        for (a, l, info) in [
            ([4.0, -inf, 2.0, 3.0], [2.0, 0.0, 1.0, 2.0f32.sqrt()], 0),
            ([-3.0, 9.0, 5.0, 6.0], [-3.0, 0.0, 5.0, 6.0], 1),
            ([nan, 0.0, 0.0, 1.0], [nan, 0.0, 0.0, 1.0], 1),
            ([1.0, 0.0, inf, 1.0], [1.0, 0.0, inf, -inf], 2),
            ([1.0, 0.0, 0.0, inf], [1.0, 0.0, 0.0, inf], 0),
            ([inf, 0.0, 0.0, 1.0], [inf, 0.0, nan, nan], 2),
        ] {
            let own = cholesky(2, &a);
            let is_same = |(got, want): (&f32, &f32)| got == want || (got.is_nan() && want.is_nan());
            assert!(own.reals[0].iter().zip(&l).all(is_same), "{a:?}: {:?}", own.reals);
            assert_eq!(own.integers, [[info]], "{a:?}");
        }
        let third = [4.0, 0.0, 0.0, 2.0, 1.0, 0.0, 6.0, 5.0, 7.0];
        // The second minor is zero: column 0 is done, of the others only what was looked at.
        assert_eq!(cholesky(3, &third).reals[0], [2.0, 0.0, 0.0, 1.0, 0.0, 0.0, 3.0, 5.0, 7.0]);
        assert_eq!(cholesky(3, &third).integers, [[2]]);
    }
}
