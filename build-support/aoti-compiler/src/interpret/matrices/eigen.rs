//! Eigenvalues of general matrices: the twin of `include/aoti/linalg_eigen.h`.

use super::orthogonal::length;
use super::{Real, Results};
use std::ops::{Add, Mul, Sub};

#[derive(Clone, Copy)]
struct Complex<T> {
    re: T,
    im: T,
}

impl<T: Real> Add for Complex<T> {
    type Output = Complex<T>;
    fn add(self, b: Complex<T>) -> Complex<T> {
        Complex { re: self.re + b.re, im: self.im + b.im }
    }
}

impl<T: Real> Sub for Complex<T> {
    type Output = Complex<T>;
    fn sub(self, b: Complex<T>) -> Complex<T> {
        Complex { re: self.re - b.re, im: self.im - b.im }
    }
}

impl<T: Real> Mul for Complex<T> {
    type Output = Complex<T>;
    fn mul(self, b: Complex<T>) -> Complex<T> {
        Complex { re: self.re * b.re - self.im * b.im, im: self.re * b.im + self.im * b.re }
    }
}

impl<T: Real> Complex<T> {
    fn real(re: T) -> Complex<T> {
        Complex { re, im: T::of(0.0) }
    }

    fn scaled(self, by: T) -> Complex<T> {
        Complex { re: self.re * by, im: self.im * by }
    }

    fn conjugate(self) -> Complex<T> {
        Complex { re: self.re, im: -self.im }
    }

    fn modulus(self) -> T {
        let (x, y) = (self.re.magnitude(), self.im.magnitude());
        let most = if x > y { x } else { y };
        if most == T::of(0.0) {
            return most;
        }
        most * ((x / most) * (x / most) + (y / most) * (y / most)).root()
    }

    fn over(self, b: Complex<T>) -> Complex<T> {
        let size = b.modulus();
        let unit = Complex { re: b.re / size, im: -b.im / size };
        (self * unit).scaled(T::of(1.0) / size)
    }

    fn root(self) -> Complex<T> {
        let re = ((self.modulus() + self.re.magnitude()) / T::of(2.0)).root();
        if re == T::of(0.0) {
            return Complex::real(T::of(0.0));
        }
        let im = self.im / (T::of(2.0) * re);
        if self.re >= T::of(0.0) {
            return Complex { re, im };
        }
        Complex { re: im.magnitude(), im: if self.im < T::of(0.0) { -re } else { re } }
    }
}

/// A rotation of two complex numbers that takes the second to zero: c is real.
#[derive(Clone, Copy)]
struct Givens<T> {
    c: T,
    s: Complex<T>,
}

impl<T: Real> Givens<T> {
    fn new(a: Complex<T>, b: Complex<T>) -> Givens<T> {
        let (x, y) = (a.modulus(), b.modulus());
        if y == T::of(0.0) {
            return Givens { c: T::of(1.0), s: Complex::real(T::of(0.0)) };
        }
        let whole = Complex { re: x, im: y }.modulus();
        let is_nothing = x == T::of(0.0);
        let phase =
            if is_nothing { Complex::real(T::of(1.0)) } else { Complex { re: a.re / x, im: a.im / x } };
        Givens { c: x / whole, s: (phase * b.conjugate()).scaled(T::of(1.0) / whole) }
    }

    /// Elements from `from` to `to` of the rows that begin at `x` and `y`.
    fn rows(&self, values: &mut [Complex<T>], from: usize, to: usize, [x, y]: [usize; 2]) {
        for i in from..to {
            let (a, b) = (values[x + i], values[y + i]);
            values[x + i] = a.scaled(self.c) + self.s * b;
            values[y + i] = b.scaled(self.c) - self.s.conjugate() * a;
        }
    }

    /// Columns x and y, by the inverse.
    fn columns(&self, values: &mut [Complex<T>], count: usize, stride: usize, [x, y]: [usize; 2]) {
        for i in 0..count {
            let (a, b) = (values[x + i * stride], values[y + i * stride]);
            values[x + i * stride] = a.scaled(self.c) + self.s.conjugate() * b;
            values[y + i * stride] = b.scaled(self.c) - self.s * a;
        }
    }
}

/// A matrix on its way to triangular form, and the unitary one that takes it there.
struct Schur<T> {
    n: usize,
    h: Vec<Complex<T>>,
    q: Vec<Complex<T>>,
}

impl<T: Real> Schur<T> {
    /// To upper Hessenberg form.
    fn reduce(&mut self) {
        let n = self.n;
        for k in 0..n.saturating_sub(2) {
            for i in (k + 2..n).rev() {
                let turn = Givens::new(self.h[(i - 1) * n + k], self.h[i * n + k]);
                turn.rows(&mut self.h, k, n, [(i - 1) * n, i * n]);
                self.h[i * n + k] = Complex::real(T::of(0.0));
                turn.columns(&mut self.h, n, n, [i - 1, i]);
                turn.columns(&mut self.q, n, n, [i - 1, i]);
            }
        }
    }

    fn shift(&self, high: usize, round: usize) -> Complex<T> {
        let (n, h) = (self.n, &self.h);
        let (a, b) = (h[(high - 1) * n + high - 1], h[(high - 1) * n + high]);
        let (c, d) = (h[high * n + high - 1], h[high * n + high]);
        if round.is_multiple_of(10) {
            return Complex { re: d.re + c.modulus(), im: d.im };
        }
        let half = (a - d).scaled(T::of(0.5));
        let spread = (half * half + b * c).root();
        let (first, second) = (half + spread, half - spread);
        d + if first.modulus() < second.modulus() { first } else { second }
    }

    /// To upper triangular form. Rounds are bounded: what has not converged then stays.
    fn iterate(&mut self) {
        let n = self.n;
        let (mut high, mut round) = (n.saturating_sub(1), 0);
        while high > 0 && round < 300 {
            let mut low = high;
            while low > 0 {
                let beside = self.h[(low - 1) * n + low - 1].modulus() + self.h[low * n + low].modulus();
                if self.h[low * n + low - 1].modulus() <= T::EPSILON * beside {
                    break;
                }
                low -= 1;
            }
            if low > 0 {
                self.h[low * n + low - 1] = Complex::real(T::of(0.0));
            }
            if low == high {
                high -= 1;
                round = 0;
                continue;
            }
            round += 1;
            self.sweep(low, high, round);
        }
    }

    fn sweep(&mut self, low: usize, high: usize, round: usize) {
        let n = self.n;
        let by = self.shift(high, round);
        (0..n).for_each(|i| self.h[i * n + i] = self.h[i * n + i] - by);
        let mut turns = Vec::new();
        for k in low..high {
            let turn = Givens::new(self.h[k * n + k], self.h[(k + 1) * n + k]);
            turn.rows(&mut self.h, k, n, [k * n, (k + 1) * n]);
            self.h[(k + 1) * n + k] = Complex::real(T::of(0.0));
            turns.push((k, turn));
        }
        for (k, turn) in turns {
            turn.columns(&mut self.h, k + 2, n, [k, k + 1]);
            turn.columns(&mut self.q, n, n, [k, k + 1]);
        }
        (0..n).for_each(|i| self.h[i * n + i] = self.h[i * n + i] + by);
    }

    /// The eigenvector of eigenvalue k, of length one, its largest element real.
    fn vector(&self, k: usize, small: T) -> Vec<Complex<T>> {
        let (n, h) = (self.n, &self.h);
        let zero = Complex::real(T::of(0.0));
        let mut y = vec![zero; n];
        y[k] = Complex::real(T::of(1.0));
        for i in (0..k).rev() {
            let sum = (i + 1..=k).fold(zero, |sum, j| sum + h[i * n + j] * y[j]);
            let mut gap = h[k * n + k] - h[i * n + i];
            if gap.modulus() < small {
                gap = Complex::real(small);
            }
            y[i] = sum.over(gap);
            // Only the direction counts, and must not overflow.
            let large = y[i].modulus();
            if large > T::of(1e8) {
                (i..=k).for_each(|j| y[j] = y[j].scaled(T::of(1.0) / large));
            }
        }
        let mut most = zero;
        let mut out = Vec::new();
        for i in 0..n {
            let sum = (0..=k).fold(zero, |sum, j| sum + self.q[i * n + j] * y[j]);
            out.push(sum);
            if sum.modulus() > most.modulus() {
                most = sum;
            }
        }
        let mut size = T::of(0.0);
        for element in &mut out {
            *element = element.over(most);
            size = size + element.re * element.re + element.im * element.im;
        }
        out.iter_mut().for_each(|element| *element = element.scaled(T::of(1.0) / size.root()));
        out
    }
}

/// Eigenvalues and, as columns, eigenvectors, both as pairs.
pub(super) fn eig<T: Real>(n: usize, a: &[T]) -> Results<T> {
    let unit = |at: usize| Complex::real(T::of(if at / n == at % n { 1.0 } else { 0.0 }));
    let h = a[..n * n].iter().map(|element| Complex::real(*element)).collect();
    let mut schur = Schur { n, h, q: (0..n * n).map(unit).collect() };
    let size = length(n * n, a, 1);
    schur.reduce();
    schur.iterate();
    // A division by zero would lose the vector; this much the matrix is not known by.
    let small = if size == T::of(0.0) { T::of(1.0) } else { T::EPSILON * size };
    let mut values = vec![T::of(0.0); 2 * n];
    let mut vectors = vec![T::of(0.0); 2 * n * n];
    for k in 0..n {
        let mut value = schur.h[k * n + k];
        let mut vector = schur.vector(k, small);
        let is_complex = value.im.magnitude() > T::of(8.0) * small;
        if !is_complex {
            // Of a real matrix: what is left of an imaginary part is rounding.
            value.im = T::of(0.0);
            vector.iter_mut().for_each(|element| element.im = T::of(0.0));
        }
        (values[2 * k], values[2 * k + 1]) = (value.re, value.im);
        for (i, element) in vector.into_iter().enumerate() {
            (vectors[2 * (i * n + k)], vectors[2 * (i * n + k) + 1]) = (element.re, element.im);
        }
    }
    Results { reals: vec![values, vectors], integers: vec![] }
}
