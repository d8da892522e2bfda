//! Decides in which order the axes of a value are laid out in memory.
//!
//! Where a target's convolutions read and write the channels of a pixel side by side, so do the kernels between them: the
//! layout spreads from convolutions through element-wise operators, views that keep the axis of channels, and reductions
//! over others. What the caller sees is row-major, and so is what is read by other means than coordinates.

use super::attention::Attentions;
use super::bytes::Bytes;
use super::element::Element;
use super::layout_cost;
use super::layout_regions::neighbourhoods;
use super::layout_spread::spread;
use super::realize::count_uses;
use crate::dtype::DType;
use crate::graph::{Conv, Graph, Node, Op, OpClass, TensorType, ValueId};
use crate::kernels;
use crate::loops::Channels;
use crate::symbolic::{Expr, Symbol};
use crate::target::{Target, templates};
use crate::tuning::Decisions;
use cranelift_entity::{EntityRef, SecondaryMap};

/// Channels side by side, of which a thread reads several at a time.
const SIDE_BY_SIDE: i64 = 8;
/// Products with an element of a convolution's input from which on GPUs read a copy of it with channels last: whatever the
/// convolution, of numbers of four bytes where tiles of results are not mostly empty, and of halves. Gathered, elements are multiplied
/// at a tenth of the rate of matrix units, which only take pieces of channels. Measured on an H200, as are the others.
const REPAYS_A_COPY: i64 = 128;
const REPAYS_A_FULL_TILE: i64 = 48;
const REPAYS_A_COPY_OF_HALVES: i64 = 16;
/// Output channels from which a tile of results is not mostly empty.
const FULL_TILE: i64 = 16;
/// Products of a convolution from which the time of a kernel that copies its input is gained back, and those of one result of
/// halves: a thread waits for each element that it gathers.
const REPAYS_A_KERNEL: i64 = 1 << 24;
const REPAYS_A_LONG_SUM: i64 = 512;
/// The axis of channels in a program.
pub(super) const CHANNELS: usize = 1;

/// Where channels are in each value that has a buffer.
#[derive(Default)]
pub(super) struct Layouts {
    channels: SecondaryMap<ValueId, Channels>,
    /// Convolutions, by their results, that read a copy of their input with channels last.
    turned: SecondaryMap<ValueId, bool>,
}

impl Layouts {
    /// Decides for all values of a graph.
    pub(super) fn decide(
        graph: &Graph,
        target: &Target,
        (attentions, bytes): (&Attentions, &Bytes),
        questions: &mut Decisions,
    ) -> Layouts {
        let mut last: SecondaryMap<ValueId, bool> = SecondaryMap::new();
        let (producers, uses) = (graph.producers(), count_uses(graph));
        let maker = |value: ValueId| producers[value.index()].map(|position| &graph.nodes[position]);
        let is_constant =
            |value: ValueId| maker(value).is_some_and(|maker| matches!(maker.op, Op::Constant(_)));
        for node in graph.nodes.iter().filter(|node| matches!(node.op, Op::Conv(_))) {
            let of_bytes = bytes.left(node.outputs[0]);
            let (input, weight) = (of_bytes.unwrap_or(node.inputs[0]), node.inputs[1]);
            if (of_bytes.is_some() || is_fitting(graph, node, target))
                && is_constant(weight)
                && uses[weight] == 1
            {
                last[node.outputs[0]] = true;
                // What is written only for it is written as it is read.
                let is_made = maker(input).is_some_and(|maker| Element::of(&maker.op).is_some());
                last[input] |= is_made && (of_bytes.is_some() || has_wide_channels(graph, input));
            }
        }
        let of_bytes: Vec<ValueId> =
            graph.nodes.iter().filter_map(|node| bytes.left(*node.outputs.first()?)).collect();
        let fitting = last.clone();
        spread(graph, &mut last, matches!(target, Target::Gpu(_)));
        let mut keep = |value: ValueId| last[value] = false;
        graph.inputs.iter().for_each(|input| keep(input.value));
        graph.outputs.iter().for_each(|output| keep(output.value));
        for node in &graph.nodes {
            read_otherwise(node).iter().copied().for_each(&mut keep);
            if matches!(node.op, Op::Conv(_)) && !fitting[node.outputs[0]] {
                keep(node.inputs[0]);
            }
            if let Some(sources) = node.outputs.first().and_then(|value| attentions.sources(*value)) {
                sources.for_each(&mut keep);
            }
        }
        let mut turned = SecondaryMap::new();
        for node in &graph.nodes {
            let Op::Conv(conv) = &node.op else { continue };
            let (input, output) = (node.inputs[0], node.outputs[0]);
            turned[output] = fitting[output] && !last[input] && repays_a_copy(graph, node, conv, target);
            // Of a convolution with groups there is a template only where its input has channels last as well.
            if conv.groups > 1 && !last[input] && !turned[output] {
                last[output] = false;
            }
        }
        // Words are of channels side by side.
        let words: Vec<ValueId> = of_bytes.into_iter().filter(|value| last[*value]).collect();
        for part in neighbourhoods(graph, &last) {
            if part.channels(graph, target, questions) == Channels::First {
                part.values.iter().for_each(|value| last[*value] = false);
            }
        }
        words.into_iter().for_each(|value| last[value] = true);
        let mut channels = SecondaryMap::new();
        for value in graph.values.keys() {
            channels[value] = if last[value] { Channels::Last } else { Channels::First };
        }
        Layouts { channels, turned }
    }

    /// Whether a convolution reads a copy of its input with channels last.
    pub(super) fn turns_input(&self, convolution: ValueId) -> bool {
        self.turned[convolution]
    }

    /// Where channels are in the buffer of a value.
    pub(super) fn of(&self, value: ValueId) -> Channels {
        self.channels[value]
    }
}

/// Whether there is a template for a convolution whose channels are last. Its weights are laid out for that when the model
/// is compiled, so nothing else may read them.
fn is_fitting(graph: &Graph, node: &Node, target: &Target) -> bool {
    let Op::Conv(conv) = &node.op else { return false };
    let weight = graph.ty(node.inputs[1]);
    match target {
        Target::Cpu(_) => templates::has_pixel_template(conv, weight),
        Target::Gpu(_) => {
            let is_float = matches!(weight.dtype, DType::F16 | DType::Bf16 | DType::F32);
            let is_fixed = weight.shape.iter().all(|size| size.as_int().is_some());
            let fits = conv.groups == 1
                || kernels::conv::windows::has_window_template(conv, weight)
                || has_wide_groups(conv, weight);
            is_float && is_fixed && !conv.transposed && fits && !conv.stride.is_empty()
        }
    }
}

/// Whether a thread reads several channels of a group at a time.
fn has_wide_groups(conv: &Conv, weight: &TensorType) -> bool {
    let is_whole = |channels: Option<i64>| channels.is_some_and(|channels| channels % SIDE_BY_SIDE == 0);
    let each = weight.shape[0].as_int().map(|channels| channels / conv.groups.max(1));
    is_whole(weight.shape[CHANNELS].as_int()) && is_whole(each)
}

/// Whether so much is multiplied with each element of the input that a copy with channels last, from which a thread reads several
/// channels at a time, is worth it. Processors have templates for either.
fn repays_a_copy(graph: &Graph, node: &Node, conv: &Conv, target: &Target) -> bool {
    let weight = &graph.ty(node.inputs[1]).shape;
    let taps: Option<Vec<i64>> = weight[CHANNELS + 1..].iter().map(Expr::as_int).collect();
    let (Some(taps), Some(outputs), Target::Gpu(_)) = (taps, weight[0].as_int(), target) else {
        return false;
    };
    let steps: i64 = conv.stride.iter().product();
    let taps: i64 = taps.iter().product();
    let products = taps * outputs / conv.groups.max(1) / steps.max(1);
    let all = layout_cost::volume(&graph.ty(node.inputs[0]).shape).saturating_mul(products);
    let are_halves = graph.ty(node.inputs[0]).dtype.size() == 2;
    let sum = weight[CHANNELS].as_int().map_or(0, |channels| channels.saturating_mul(taps));
    let least = match () {
        () if conv.groups > 1 => REPAYS_A_COPY,
        () if are_halves => REPAYS_A_COPY_OF_HALVES,
        () if outputs >= FULL_TILE => REPAYS_A_FULL_TILE,
        () => REPAYS_A_COPY,
    };
    let is_long = are_halves && conv.groups == 1 && sum >= REPAYS_A_LONG_SUM;
    // Of one tap, the pixels of a channel are rows of a product already.
    taps > 1
        && products >= least
        && (all >= REPAYS_A_KERNEL || is_long)
        && has_wide_channels(graph, node.inputs[0])
}

fn has_wide_channels(graph: &Graph, value: ValueId) -> bool {
    graph.ty(value).shape[CHANNELS].as_int().is_some_and(|channels| channels % SIDE_BY_SIDE == 0)
}

/// Whether the coordinates of a view have the channels of its operand along its own axis of channels, and nothing else there.
pub(super) fn keeps_channels(coords: &[Expr]) -> bool {
    has_channels_along(coords, Symbol::axis(1))
}

/// Whether the coordinates of a view have the channels of its operand along one of its axes, and nothing else there.
pub(super) fn has_channels_along(coords: &[Expr], own: Symbol) -> bool {
    let is_step = |coord: &Expr| coord.affine_in(own).is_some_and(|(step, _)| step.is(1));
    coords.iter().enumerate().all(
        |(axis, coord)| {
            if axis == CHANNELS { is_step(coord) } else { !coord.mentions(own) }
        },
    )
}

/// Operands that an operator does not read by coordinates.
fn read_otherwise(node: &Node) -> &[ValueId] {
    match node.op.class() {
        OpClass::Gather(_) => &node.inputs[..1],
        OpClass::AxisOp | OpClass::Opaque(_) | OpClass::Effect | OpClass::Control => &node.inputs,
        OpClass::Source
        | OpClass::Elementwise
        | OpClass::View(_)
        | OpClass::Pad(_)
        | OpClass::Scatter(_)
        | OpClass::Concat
        | OpClass::Reduction(_)
        | OpClass::Contraction => &[],
    }
}

#[cfg(test)]
mod tests {
    use crate::graph::Graph;
    use crate::graph::text::parse;
    use crate::loops::text::print;
    use crate::loops::{Channels, KernelKind, Program};
    use crate::lower::lower;
    use crate::schedule::Setting;
    use crate::target::{GpuTarget, Target};
    use crate::tuning::{Decisions, Records, TuningPoint};

    fn lowered(body: &str, target: &Target) -> Program {
        let text = format!(
            "graph \"g\" {{
              const c0 \"w\": f32[8, 8, 3, 3] = splat 0.5
              const c1 \"v\": f32[8, 1, 3, 3] = splat 0.5
              const c2 \"u\": f32[16, 4, 3, 3] = splat 0.5
              input %x \"x\": f32[2, 8, 6, 6]
              %w: f32[8, 8, 3, 3] = constant c0
              %again: f32[8, 8, 3, 3] = constant c0
              %v: f32[8, 1, 3, 3] = constant c1
              %u: f32[16, 4, 3, 3] = constant c2
              {body}
            }}"
        );
        lower(&parse(&text).unwrap_or_else(|error| panic!("{error}")), target, &mut Decisions::default())
    }

    fn gpu() -> Target {
        Target::Gpu(GpuTarget::named("sm_90a").expect("it is in the table"))
    }

    const SAME: &str = "stride [1, 1] padding [1:1, 1:1] dilation [1, 1]";

    /// Where the channels of input and output are, for each convolution.
    fn convolutions(program: &Program) -> Vec<(Channels, Channels)> {
        let places = program.kernels.values().filter_map(|kernel| {
            let KernelKind::Convolution(conv) = &kernel.kind else { return None };
            Some((conv.input_channels, conv.output_channels))
        });
        places.collect()
    }

    fn two(between: &str, sizes: &str, groups: i64, weight: &str) -> String {
        format!(
            "%a: f32[2, 8, 6, 6] = conv %x, %w {SAME} groups 1
             {between}
             %y: f32{sizes} = conv %b, %{weight} {SAME} groups {groups}
             output %y \"y\""
        )
    }

    #[test]
    fn what_stands_between_convolutions_lies_as_they_read_it() {
        let between = "%p: f32[2, 8, 3, 3, 2, 2] = view %a [i0, i1, 2*i2 + i4, 2*i3 + i5]
             %m: f32[2, 8, 3, 3] = max %p axes [4, 5]
             %b: f32[2, 8, 3, 3] = tanh %m";
        let program = lowered(&two(between, "[2, 8, 3, 3]", 1, "again"), &gpu());
        // What comes from the caller and goes to it is as programs have it.
        assert_eq!(
            convolutions(&program),
            [(Channels::First, Channels::Last), (Channels::Last, Channels::First)]
        );
        assert!(
            program
                .buffers
                .values()
                .any(|buffer| buffer.shape == [2, 3, 3, 8].map(crate::symbolic::Expr::int))
        );
        let again = crate::loops::text::parse(&print(&program)).expect("it parses");
        assert_eq!(print(&again), print(&program));
        assert!(print(&program).contains("from channels_last"));
    }

    #[test]
    fn what_is_added_to_a_value_lies_as_it_does() {
        let text = format!(
            "graph \"g\" {{
              const c0 \"w\": f32[128, 128, 3, 3] = splat 0.5
              input %x \"x\": f32[2, 128, 6, 6]
              %w: f32[128, 128, 3, 3] = constant c0
              %v: f32[128, 128, 3, 3] = constant c0
              %a: f32[2, 128, 6, 6] = conv %x, %w {SAME} groups 1
              %g: f32[2, 1, 128, 6, 6] = view %a [i0, i2, i3, i4]
              %h: f32[2, 1, 128, 6, 6] = exp %g
              %n: f32[2, 128, 6, 6] = view %h [i0, 0, i1, i2, i3]
              %m: f32[2, 128, 6, 6] = tanh %n
              %p: f32[2, 128, 6, 6, 3, 3] = pad %m [i0, i1, i2 + i4 - 1, i3 + i5 - 1] fill 0.0
              %q: f32[2, 128, 6, 6] = sum %p axes [4, 5]
              %b: f32[2, 128, 6, 6] = add %a, %q
              %y: f32[2, 128, 6, 6] = conv %b, %v {SAME} groups 1
              output %y \"y\"
            }}"
        );
        let graph = parse(&text).unwrap_or_else(|error| panic!("{error}"));
        let program = lower(&graph, &Target::cpu(&["x86-64-v3"]), &mut Decisions::default());
        let shape = [2, 128, 6, 6].map(crate::symbolic::Expr::int);
        let first = program.buffers.values().filter(|buffer| buffer.shape == shape);
        assert_eq!(first.count(), 2, "the input and the output, which callers see");
    }

    #[test]
    fn what_is_made_for_convolutions_alone_lies_as_they_read_it() {
        // As behind the statistics of a normalisation: no operand says where channels are.
        let between = "%s: f32[2, 2, 4, 6, 6] = view %a [i0, 4*i1 + i2, i3, i4]
             %t: f32[2, 2, 4, 6, 6] = mul %s, %s
             %h: f32[2, 8, 6, 6] = view %t [i0, i1 // 4, i1 % 4, i2, i3]
             %c: f32[2, 8, 6, 6] = cos %h
             %d: f32[2, 8, 6, 6] = tanh %c
             %b: f32[2, 8, 6, 6] = mul %c, %d";
        let order = |also: &str| {
            let program = lowered(&format!("{}{also}", two(between, "[2, 8, 6, 6]", 1, "again")), &gpu());
            let tables = program.buffers.values().filter(|buffer| buffer.shape.len() == 4);
            let last = [2, 6, 6, 8].map(crate::symbolic::Expr::int);
            tables.filter(|buffer| buffer.shape == last).count()
        };
        assert_eq!(order(""), 3, "a result of a convolution, what the other reads, and what that is made of");
        assert_eq!(order("\n%n: f32[2, 8, 36] = view %c [i0, i1, i2 // 6, i2 % 6]\noutput %n \"n\""), 2);
    }

    #[test]
    fn gpus_copy_the_input_of_a_large_convolution_with_channels_last() {
        let of = |dtype: &str, [outputs, channels, pixels]: [i64; 3], target: &Target| {
            let text = format!(
                "graph \"g\" {{
                  const c0 \"w\": {dtype}[{outputs}, {channels}, 3, 3] = splat 0.5
                  input %x \"x\": {dtype}[4, {channels}, {pixels}, {pixels}]
                  %w: {dtype}[{outputs}, {channels}, 3, 3] = constant c0
                  %y: {dtype}[4, {outputs}, {pixels}, {pixels}] = conv %x, %w {SAME} groups 1
                  output %y \"y\"
                }}"
            );
            let graph = parse(&text).unwrap_or_else(|error| panic!("{error}"));
            convolutions(&lower(&graph, target, &mut Decisions::default()))[0].0
        };
        let read = |channels: i64, pixels: i64, target: &Target| of("f32", [64, channels, pixels], target);
        assert_eq!(read(32, 64, &gpu()), Channels::Last);
        assert_eq!(of("f32", [8, 32, 128], &gpu()), Channels::First, "tiles would be mostly empty");
        assert_eq!(of("f16", [8, 32, 128], &gpu()), Channels::Last, "units take pieces of channels alone");
        assert_eq!(of("f16", [8, 64, 8], &gpu()), Channels::Last, "long sums of few results wait for memory");
        assert_eq!(of("f16", [8, 32, 8], &gpu()), Channels::First);
        assert_eq!(read(3, 200, &gpu()), Channels::First, "a thread reads several channels at a time");
        assert_eq!(read(32, 8, &gpu()), Channels::First, "a kernel more costs more than it saves");
        assert_eq!(read(32, 64, &Target::cpu(&["x86-64-v3"])), Channels::First);
    }

    #[test]
    fn what_has_no_template_reads_channels_first() {
        let program = lowered(&two("%b: f32[2, 8, 6, 6] = tanh %a", "[2, 16, 6, 6]", 2, "u"), &gpu());
        assert_eq!(
            convolutions(&program),
            [(Channels::First, Channels::Last), (Channels::First, Channels::First)]
        );
    }

    #[test]
    fn few_channels_a_group_are_read_with_channels_last_on_gpus() {
        let program = lowered(&two("%b: f32[2, 8, 6, 6] = tanh %a", "[2, 8, 6, 6]", 8, "v"), &gpu());
        assert_eq!(
            convolutions(&program),
            [(Channels::First, Channels::Last), (Channels::Last, Channels::First)]
        );
    }

    #[test]
    fn processors_have_templates_for_a_channel_at_a_time_too() {
        let cpu = Target::cpu(&["x86-64-v3"]);
        let program = lowered(
            "%a: f32[2, 8, 6, 6] = conv %x, %w stride [1, 1] padding [1:1, 1:1] dilation [1, 1] groups 1
             %b: f32[2, 8, 6, 6] = tanh %a
             %d: f32[2, 8, 6, 6] = conv %b, %v stride [1, 1] padding [1:1, 1:1] dilation [1, 1] groups 8
             %m: f32[2, 8] = sum %d axes [2, 3]
             output %m \"y\"",
            &cpu,
        );
        assert_eq!(
            convolutions(&program),
            [(Channels::First, Channels::Last), (Channels::Last, Channels::Last)]
        );
    }

    #[test]
    fn a_channel_at_a_time_wants_its_input_with_channels_last() {
        let program = lowered(
            "%a: f32[2, 8, 6, 6] = conv %x, %v stride [1, 1] padding [1:1, 1:1] dilation [1, 1] groups 8
             %m: f32[2, 8] = sum %a axes [2, 3]
             output %m \"y\"",
            &Target::cpu(&["x86-64-v3"]),
        );
        assert_eq!(convolutions(&program), [(Channels::First, Channels::First)]);
    }

    #[test]
    fn processors_keep_channels_first_where_turning_costs_more_than_convolutions_gain() {
        let program = lowered(
            "%a: f32[2, 8, 6, 6] = conv %x, %w stride [1, 1] padding [1:1, 1:1] dilation [1, 1] groups 1
             %b: f32[2, 2, 144] = view %a [i0, 4*i1 + i2 // 36, i2 % 36 // 6, i2 % 6]
             %m: f32[2, 2] = sum %b axes [2]
             output %m \"y\"",
            &Target::cpu(&["x86-64-v3"]),
        );
        assert_eq!(convolutions(&program), [(Channels::First, Channels::First)]);
    }

    #[test]
    fn views_that_mix_channels_with_pixels_end_a_layout() {
        let between = "%b: f32[2, 8, 6, 6] = view %a [i0, i2 + 2, min(i1, 5), i3]";
        let program = lowered(&two(between, "[2, 16, 6, 6]", 2, "u"), &gpu());
        assert_eq!(convolutions(&program)[1].0, Channels::First);
    }

    /// Two convolutions one after the other, and by themselves with other names and numbers.
    fn apart(name: &str, before: &str) -> Graph {
        let text = format!(
            "graph \"g\" {{
              const c0 \"w\": f32[8, 8, 3, 3] = splat 0.5
              const c1 \"v\": f32[8, 8, 3, 3] = splat 0.25
              {before}
              input %x \"x\": f32[2, 8, 6, 6]
              %w: f32[8, 8, 3, 3] = constant c0
              %v: f32[8, 8, 3, 3] = constant c1
              %a \"{name}\": f32[2, 8, 6, 6] = conv %x, %w {SAME} groups 1
              %m: f32[2, 8] = sum %a axes [2, 3]
              %n: f32[2, 8, 6, 6] = view %m [i0, i1]
              %o: f32[2, 8, 6, 6] = cos %n
              %b \"{name}_2\": f32[2, 8, 6, 6] = conv %o, %v {SAME} groups 1
              %y: f32[2, 6] = max %b axes [1, 3]
              output %y \"y\"
            }}"
        );
        parse(&text).unwrap_or_else(|error| panic!("{error}"))
    }

    fn asked(graph: &Graph, target: &Target, records: &Records) -> (Program, Vec<TuningPoint>) {
        let mut questions = Decisions::new(records);
        let program = lower(graph, target, &mut questions);
        assert_eq!(crate::loops::verify(&program), Vec::<String>::new());
        (program, questions.into_asked())
    }

    #[test]
    fn each_neighbourhood_is_a_question_that_records_answer() {
        let graph = apart("a", "");
        for target in [gpu(), Target::cpu(&["x86-64-v3"])] {
            let (first, questions) = asked(&graph, &target, &Records::none());
            assert_eq!(questions.len(), 2, "{questions:#?}");
            let names: Vec<&str> = questions.iter().map(|own| own.about.as_str()).collect();
            assert_eq!(names, ["channels of a", "channels of a_2"]);
            for (position, question) in questions.iter().enumerate() {
                let mut records = Records::none();
                records.set(question.key.clone(), question.answers[1].config.clone());
                let (other, again) = asked(&graph, &target, &records);
                assert_eq!(again[position].taken, 1);
                let (own, others) = (convolutions(&other), convolutions(&first));
                for (number, (own, other)) in own.into_iter().zip(others).enumerate() {
                    assert_eq!(own != other, number == position, "{own:?} {other:?}");
                }
                records.set(question.key.clone(), Setting::Parts(4));
                assert_eq!(asked(&graph, &target, &records).0, first, "that is no answer");
                records.set(question.key.clone(), question.answers[0].config.clone());
                assert_eq!(asked(&graph, &target, &records).0, first, "the first is the default");
            }
            let before = "input %z \"z\": f32[7]\n%q: f32[7] = neg %z\noutput %q \"q\"";
            let keys = |own: &[TuningPoint]| own.iter().map(|own| own.key.clone()).collect::<Vec<_>>();
            let other = asked(&apart("another", before), &target, &Records::none()).1;
            assert_eq!(keys(&other), keys(&questions), "names and numbers are no part of a key");
        }
    }
}
