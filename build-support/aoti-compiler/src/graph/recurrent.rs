//! Recurrent layers as one operator: what happens at a step, in which directions, and the shapes of what goes in and comes out.

use crate::symbolic::Expr;

/// What happens at one step, as PyTorch computes it.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug)]
pub enum Cell {
    /// Gates are those of the input, of forgetting, the candidate and that of the output.
    Lstm,
    /// Gates are reset, update and the candidate, whose recurrent part is reset after the product.
    Gru,
    /// The hyperbolic tangent of the sum.
    Tanh,
    /// The sum, or zero where it is negative.
    Relu,
}

impl Cell {
    /// All of them.
    pub const ALL: [Cell; 4] = [Cell::Lstm, Cell::Gru, Cell::Tanh, Cell::Relu];

    /// The name in text forms.
    pub fn name(self) -> &'static str {
        match self {
            Cell::Lstm => "lstm",
            Cell::Gru => "gru",
            Cell::Tanh => "tanh",
            Cell::Relu => "relu",
        }
    }

    /// Gates of a hidden unit.
    pub fn gates(self) -> i64 {
        match self {
            Cell::Lstm => 4,
            Cell::Gru => 3,
            Cell::Tanh | Cell::Relu => 1,
        }
    }

    /// Whether it has a state beside the hidden one.
    pub fn has_memory(self) -> bool {
        self == Cell::Lstm
    }
}

/// In which order the steps of a sequence are taken.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug)]
pub enum Directions {
    /// From the first to the last.
    Forward,
    /// From the last to the first.
    Reverse,
    /// Both, each with weights of its own.
    Both,
}

impl Directions {
    /// All of them.
    pub const ALL: [Directions; 3] = [Directions::Forward, Directions::Reverse, Directions::Both];

    /// The name in text forms.
    pub fn name(self) -> &'static str {
        match self {
            Directions::Forward => "forward",
            Directions::Reverse => "reverse",
            Directions::Both => "both",
        }
    }

    /// How many there are.
    pub fn count(self) -> i64 {
        match self {
            Directions::Forward | Directions::Reverse => 1,
            Directions::Both => 2,
        }
    }

    /// Whether each of them goes backwards.
    pub fn reversed(self) -> &'static [bool] {
        match self {
            Directions::Forward => &[false],
            Directions::Reverse => &[true],
            Directions::Both => &[false, true],
        }
    }
}

/// One recurrent layer over a sequence. Operands, in this order, with `d` directions, `g` gates, `h` hidden units and `o` numbers of
/// the hidden state: the input's part of all gates `[steps, batch, d * g * h]`, the recurrent weight `[d, g * h, o]`, its bias
/// `[d, g * h]`, the projection `[d, o, h]`, the hidden state at the start `[d, batch, o]`, and that of an LSTM's memory `[d, batch, h]`.
/// Results: all hidden states `[steps, batch, d * o]`, the last ones `[d, batch, o]`, and the last memory `[d, batch, h]`.
/// The states of half types are rounded at each step; what happens between two of them is computed in `f32`.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug)]
pub struct Recurrent {
    /// What happens at one step.
    pub cell: Cell,
    /// In which order.
    pub directions: Directions,
    /// Hidden units.
    pub hidden: i64,
    /// To how many numbers an LSTM projects its hidden state, if it does.
    pub projected: Option<i64>,
    /// Whether the first two axes of the input's part and of all hidden states are exchanged.
    pub batch_first: bool,
    /// Whether there is a recurrent bias.
    pub has_bias: bool,
    /// Whether states at the start are given; else they are zero.
    pub has_start: bool,
}

/// Operands or results of a layer by what they are.
#[derive(Clone, Debug)]
pub struct Operands<T> {
    /// The input's part of all gates.
    pub gates: T,
    /// The recurrent weight.
    pub weight: T,
    /// The recurrent bias.
    pub bias: Option<T>,
    /// The projection.
    pub projection: Option<T>,
    /// The hidden state at the start.
    pub hidden: Option<T>,
    /// The memory at the start.
    pub memory: Option<T>,
}

impl<T> Operands<T> {
    /// In their order.
    pub fn into_list(self) -> Vec<T> {
        let optional = [self.bias, self.projection, self.hidden, self.memory];
        [self.gates, self.weight].into_iter().chain(optional.into_iter().flatten()).collect()
    }
}

/// Units of a layer at most: their products are numbers of 64 bits.
pub const WIDEST: i64 = 1 << 24;

impl Recurrent {
    /// Whether its sizes can be, and only an LSTM projects.
    pub fn is_sound(&self) -> bool {
        let can_be = |width: i64| (1..=WIDEST).contains(&width);
        can_be(self.hidden) && self.projected.is_none_or(|width| can_be(width) && self.cell == Cell::Lstm)
    }

    /// Numbers of the hidden state.
    pub fn state(&self) -> i64 {
        self.projected.unwrap_or(self.hidden)
    }

    /// The operands from a list in their order; nothing if there are more or less.
    pub fn operands<T: Copy>(&self, list: &[T]) -> Option<Operands<T>> {
        let mut list = list.iter().copied();
        let mut next = |is_there: bool| if is_there { list.next().map(Some) } else { Some(None) };
        let (gates, weight) = (next(true)??, next(true)??);
        let (bias, projection) = (next(self.has_bias)?, next(self.projected.is_some())?);
        let (hidden, memory) = (next(self.has_start)?, next(self.has_start && self.cell.has_memory())?);
        list.next().is_none().then_some(Operands { gates, weight, bias, projection, hidden, memory })
    }

    /// The shape of something that has steps, a batch and `columns`.
    fn sequence(&self, steps: &Expr, batch: &Expr, columns: i64) -> Vec<Expr> {
        let [first, second] = if self.batch_first { [batch, steps] } else { [steps, batch] };
        vec![first.clone(), second.clone(), Expr::int(columns)]
    }

    /// The shapes of the operands, in their order.
    pub fn operand_shapes(&self, steps: &Expr, batch: &Expr) -> Vec<Vec<Expr>> {
        let (count, units) = (self.directions.count(), self.cell.gates() * self.hidden);
        let state = |width: i64| vec![Expr::int(count), batch.clone(), Expr::int(width)];
        let numbers = |sizes: &[i64]| sizes.iter().copied().map(Expr::int).collect::<Vec<_>>();
        let has_memory = self.has_start && self.cell.has_memory();
        Operands {
            gates: self.sequence(steps, batch, count * units),
            weight: numbers(&[count, units, self.state()]),
            bias: self.has_bias.then(|| numbers(&[count, units])),
            projection: self.projected.map(|width| numbers(&[count, width, self.hidden])),
            hidden: self.has_start.then(|| state(self.state())),
            memory: has_memory.then(|| state(self.hidden)),
        }
        .into_list()
    }

    /// The shapes of the results.
    pub fn result_shapes(&self, steps: &Expr, batch: &Expr) -> Vec<Vec<Expr>> {
        let count = self.directions.count();
        let state = |width: i64| vec![Expr::int(count), batch.clone(), Expr::int(width)];
        let memory = self.cell.has_memory().then(|| state(self.hidden));
        let all = self.sequence(steps, batch, count * self.state());
        [all, state(self.state())].into_iter().chain(memory).collect()
    }

    /// Steps and batch of an operand that has both.
    pub fn steps_and_batch<'s>(&self, shape: &'s [Expr]) -> Option<(&'s Expr, &'s Expr)> {
        let [first, second, _] = shape else { return None };
        Some(if self.batch_first { (second, first) } else { (first, second) })
    }

    /// The parameters in text forms.
    pub(crate) fn text(&self) -> String {
        let projected = self.projected.map_or(String::new(), |width| format!(" projected {width}"));
        let flags = [("batch_first", self.batch_first), ("bias", self.has_bias), ("start", self.has_start)];
        let flags: String = flags.iter().filter(|(_, is)| *is).map(|(word, _)| format!(" {word}")).collect();
        format!("{} {} hidden {}{projected}{flags}", self.cell.name(), self.directions.name(), self.hidden)
    }
}
