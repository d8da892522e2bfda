//! Reflections and rotations: the twin of `include/aoti/linalg_orthogonal.h`.

use super::{Real, Results};

/// Rotations stop at the latest after so many times all pairs.
const SWEEPS: usize = 60;

/// The length of a column of `count` elements `stride` apart, without overflow on the way.
pub(super) fn length<T: Real>(count: usize, x: &[T], stride: usize) -> T {
    let mut most = T::of(0.0);
    for i in 0..count {
        if x[i * stride].magnitude() > most {
            most = x[i * stride].magnitude();
        }
    }
    if most == T::of(0.0) {
        return most;
    }
    let mut sum = T::of(0.0);
    for i in 0..count {
        let part = x[i * stride] / most;
        sum = sum + part * part;
    }
    most * sum.root()
}

/// Where a reflection works: column `j` of vectors, rows of `a` from `j` to `m`, columns from `first` to `n`.
struct Place {
    j: usize,
    m: usize,
    n: usize,
    first: usize,
}

/// Applies I - tau v v^T, where v is 1 and then what is below row j of its column.
fn reflect<T: Real>(place: &Place, v: &dyn Fn(&[T], usize) -> T, tau: T, a: &mut [T]) {
    let Place { j, m, n, first } = *place;
    let mut work: Vec<T> = (first..n).map(|c| a[j * n + c]).collect();
    for i in j + 1..m {
        let factor = v(a, i);
        for c in first..n {
            work[c - first] = work[c - first] + factor * a[i * n + c];
        }
    }
    for c in first..n {
        work[c - first] = work[c - first] * tau;
        a[j * n + c] = a[j * n + c] - work[c - first];
    }
    for i in j + 1..m {
        let factor = v(a, i);
        for c in first..n {
            a[i * n + c] = a[i * n + c] - factor * work[c - first];
        }
    }
}

/// R in the upper triangle, below it the vectors of the reflections.
pub(super) fn qr<T: Real>(m: usize, n: usize, a: &[T]) -> Results<T> {
    let mut a = a.to_vec();
    let mut factors = Vec::new();
    for j in 0..m.min(n) {
        let first = a[j * n + j];
        if j + 1 == m || length(m - j - 1, &a[(j + 1) * n + j..], n) == T::of(0.0) {
            factors.push(T::of(0.0));
            continue;
        }
        let mut whole = length(m - j, &a[j * n + j..], n);
        if first > T::of(0.0) {
            whole = -whole;
        }
        let tau = (whole - first) / whole;
        factors.push(tau);
        for i in j + 1..m {
            a[i * n + j] = a[i * n + j] / (first - whole);
        }
        a[j * n + j] = whole;
        reflect(&Place { j, m, n, first: j + 1 }, &|a, i| a[i * n + j], tau, &mut a);
    }
    Results { reals: vec![a, factors], integers: vec![] }
}

/// The first n columns of the product of n reflections.
pub(super) fn reflections<T: Real>(m: usize, n: usize, vectors: &[T], factors: &[T]) -> Results<T> {
    let unit = |at: usize| if at / n.max(1) == at % n.max(1) { T::of(1.0) } else { T::of(0.0) };
    let mut q: Vec<T> = (0..m * n).map(unit).collect();
    for j in (0..n).rev() {
        reflect(&Place { j, m, n, first: j }, &|_, i| vectors[i * n + j], factors[j], &mut q);
    }
    Results { reals: vec![q], integers: vec![] }
}

/// Sine and cosine of the rotation that takes what is off the diagonal of a symmetric matrix of two rows to zero.
struct Rotation<T> {
    c: T,
    s: T,
}

impl<T: Real> Rotation<T> {
    fn new(x: T, y: T, off: T) -> Rotation<T> {
        let ratio = (y - x) / (T::of(2.0) * off);
        let size = ratio.magnitude();
        let sign = if ratio < T::of(0.0) { T::of(-1.0) } else { T::of(1.0) };
        // Of a ratio whose square overflows, nothing is left beside it.
        let t = if size > T::of(1e15) {
            sign / (T::of(2.0) * size)
        } else {
            sign / (size + (ratio * ratio + T::of(1.0)).root())
        };
        let c = T::of(1.0) / (t * t + T::of(1.0)).root();
        Rotation { c, s: t * c }
    }

    /// Turns `count` pairs, whose halves begin at `x` and `y` and are `stride` apart.
    fn turn(&self, values: &mut [T], count: usize, [x, y]: [usize; 2], stride: usize) {
        for i in 0..count {
            let (a, b) = (values[x + i * stride], values[y + i * stride]);
            values[x + i * stride] = self.c * a - self.s * b;
            values[y + i * stride] = self.s * a + self.c * b;
        }
    }
}

/// Eigenvalues, ascending, and eigenvectors as columns, of the lower triangle.
pub(super) fn eigh<T: Real>(n: usize, lower: &[T]) -> Results<T> {
    let places = || (0..n).flat_map(|i| (0..n).map(move |j| (i, j)));
    let mut a: Vec<T> = places().map(|(i, j)| lower[if j <= i { i * n + j } else { j * n + i }]).collect();
    let mut v: Vec<T> = places().map(|(i, j)| T::of(if i == j { 1.0 } else { 0.0 })).collect();
    for _ in 0..SWEEPS {
        let mut turned = false;
        for p in 0..n {
            for q in p + 1..n {
                let (x, y, off) = (a[p * n + p], a[q * n + q], a[p * n + q]);
                let most = if x.magnitude() > y.magnitude() { x.magnitude() } else { y.magnitude() };
                let apart = off.magnitude() > T::EPSILON * T::of(0.25) * most;
                if !apart {
                    (a[p * n + q], a[q * n + p]) = (T::of(0.0), T::of(0.0));
                    continue;
                }
                turned = true;
                let rotation = Rotation::new(x, y, off);
                rotation.turn(&mut a, n, [p * n, q * n], 1);
                rotation.turn(&mut a, n, [p, q], n);
                rotation.turn(&mut v, n, [p, q], n);
            }
        }
        if !turned {
            break;
        }
    }
    let mut values: Vec<T> = (0..n).map(|i| a[i * n + i]).collect();
    for i in 0..n {
        let mut least = i;
        for j in i + 1..n {
            if values[j] < values[least] {
                least = j;
            }
        }
        if least != i {
            values.swap(i, least);
            (0..n).for_each(|r| v.swap(r * n + i, r * n + least));
        }
    }
    Results { reals: vec![values, v], integers: vec![] }
}

/// The parts of row `at` along the rows before it go.
fn orthogonalise<T: Real>(at: usize, count: usize, rows: &mut [T]) {
    for j in 0..at {
        let mut sum = T::of(0.0);
        for i in 0..count {
            sum = sum + rows[j * count + i] * rows[at * count + i];
        }
        for i in 0..count {
            rows[at * count + i] = rows[at * count + i] - sum * rows[j * count + i];
        }
    }
}

/// Rotates columns, which lie along rows of `x`, in pairs until all are orthogonal, and `v` with them.
fn rotate_columns<T: Real>(m: usize, n: usize, x: &mut [T], v: &mut [T]) {
    for _ in 0..SWEEPS {
        let mut turned = false;
        for p in 0..n {
            for q in p + 1..n {
                let (mut aa, mut bb, mut ab) = (T::of(0.0), T::of(0.0), T::of(0.0));
                for i in 0..m {
                    let (a, b) = (x[p * m + i], x[q * m + i]);
                    (aa, bb, ab) = (aa + a * a, bb + b * b, ab + a * b);
                }
                let apart = ab.magnitude() > T::EPSILON * aa.root() * bb.root();
                if !apart {
                    continue;
                }
                turned = true;
                let rotation = Rotation::new(aa, bb, ab);
                rotation.turn(x, m, [p * m, q * m], 1);
                rotation.turn(v, n, [p * n, q * n], 1);
            }
        }
        if !turned {
            break;
        }
    }
}

/// Singular values, descending, with left and right singular vectors as columns, where there are at least as many rows as
/// columns.
pub(super) fn svd<T: Real>(m: usize, n: usize, a: &[T]) -> Results<T> {
    let mut most = T::of(0.0);
    for element in &a[..m * n] {
        if element.magnitude() > most {
            most = element.magnitude();
        }
    }
    if most == T::of(0.0) {
        most = T::of(1.0);
    }
    let mut x: Vec<T> = (0..n).flat_map(|j| (0..m).map(move |i| a[i * n + j] / most)).collect();
    let mut v: Vec<T> =
        (0..n).flat_map(|j| (0..n).map(move |i| T::of(if i == j { 1.0 } else { 0.0 }))).collect();
    rotate_columns(m, n, &mut x, &mut v);
    let mut s: Vec<T> = (0..n).map(|j| length(m, &x[j * m..], 1)).collect();
    for j in 0..n {
        let mut largest = j;
        for k in j + 1..n {
            if s[k] > s[largest] {
                largest = k;
            }
        }
        if largest != j {
            s.swap(j, largest);
            (0..m).for_each(|i| x.swap(j * m + i, largest * m + i));
            (0..n).for_each(|i| v.swap(j * n + i, largest * n + i));
        }
        let is_something = s[j] > T::EPSILON * T::EPSILON * s[0];
        let size = if is_something { s[j] } else { new_direction(j, m, &mut x) };
        (0..m).for_each(|i| x[j * m + i] = x[j * m + i] / size);
    }
    let left = (0..m).flat_map(|i| (0..n).map(move |j| j * m + i)).map(|at| x[at]).collect();
    let right = (0..n).flat_map(|i| (0..n).map(move |j| j * n + i)).map(|at| v[at]).collect();
    Results { reals: vec![left, s.into_iter().map(|value| value * most).collect(), right], integers: vec![] }
}

/// Makes row `j` of `x` one that is orthogonal to those before it, and gives its length.
fn new_direction<T: Real>(j: usize, m: usize, x: &mut [T]) -> T {
    let mut size = T::of(0.0);
    for axis in 0..m {
        (0..m).for_each(|i| x[j * m + i] = T::of(if i == axis { 1.0 } else { 0.0 }));
        orthogonalise(j, m, x);
        orthogonalise(j, m, x);
        size = length(m, &x[j * m..], 1);
        let is_short = size * size * T::of(2.0 * m as f64) < T::of(1.0);
        if !is_short && size != T::of(0.0) {
            return size;
        }
        size = T::of(0.0);
    }
    size
}
