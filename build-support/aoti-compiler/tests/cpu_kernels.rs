//! The C++ that is printed for processors stands in goldens, beside that of devices.
//!
//! `UPDATE_GOLDENS=1` rewrites them.

use aoti_compiler::compile::{Emit, Options, compile, emit};
use bytes::Bytes;
use std::path::Path;

/// Graphs of the tests of devices.
const NAMES: [&str; 10] = [
    "bytes",
    "kernels",
    "control",
    "attention",
    "random",
    "matrices",
    "narrow",
    "order",
    "scatters",
    "grouped",
];

/// Both levels that templates differ for.
const LEVELS: [&str; 2] = ["x86-64-v3", "x86-64-v4"];

fn printed(folder: &Path, name: &str) -> String {
    let model =
        std::fs::read(folder.join(format!("tests/device/{name}.aoti"))).expect("the graph is in the tree");
    let options = Options::new(name, LEVELS);
    emit(Bytes::from(model), &options, Emit::Cpp).expect("the graph compiles")
}

#[test]
fn kernels_are_printed_as_the_goldens_say() {
    let folder = Path::new(env!("CARGO_MANIFEST_DIR"));
    let mut stale = Vec::new();
    for name in NAMES {
        let text = printed(folder, name);
        let path = folder.join(format!("tests/goldens/cpu/{name}.cpp"));
        if std::env::var_os("UPDATE_GOLDENS").is_some() {
            std::fs::write(&path, text).expect("goldens can be written");
        } else if std::fs::read_to_string(&path).ok().as_ref() != Some(&text) {
            stale.push(path);
        }
    }
    assert!(
        stale.is_empty(),
        "{stale:?} differ from what is printed: read the new ones with UPDATE_GOLDENS=1"
    );
}

#[test]
fn what_kernels_have_in_common_is_compiled_in_one_unit() {
    let path = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/device/attention.aoti");
    let model = std::fs::read(path).expect("the graph is in the tree");
    let bundle = compile(Bytes::from(model), &Options::new("attention", ["x86-64-v3"])).expect("it compiles");
    let units: Vec<&str> = bundle
        .files
        .iter()
        .filter(|file| file.name.starts_with("kernels_") && file.name.ends_with(".cpp"))
        .map(|file| file.text.as_str())
        .collect();
    assert!(units.len() > 1, "the kernels are too few to show anything");
    for header in ["gemm.h", "dots.h", "attention.h"] {
        let include = format!("#include \"aoti/{header}\"");
        let users = units.iter().filter(|unit| unit.contains(&include)).count();
        assert_eq!(users, 1, "{users} of {} units instantiate the templates of `{header}`", units.len());
    }
}

/// Layers of a network that differ in sizes alone: what they instantiate of the headers is compiled once.
#[test]
fn convolutions_that_differ_in_sizes_are_calls_of_one_function() {
    let conv = "stride [1, 1] padding [1:1, 1:1] dilation [1, 1] groups 1 output_padding [0, 0]";
    let layer = |name: &str, channels: usize, size: usize| {
        let image = format!("f32[1, {channels}, {size}, {size}]");
        let weight = format!("f32[{channels}, {channels}, 3, 3]");
        let constant = format!("const c_{name} \"{name}\": {weight} = random 1\n");
        let body = format!(
            "%w{name}: {weight} = constant c_{name}
             %c{name}: {image} = conv %x{name}, %w{name} {conv}
             %t{name}: {image} = tanh %c{name}
             output %t{name}\n"
        );
        (constant, format!("input %x{name}: {image}\n"), body)
    };
    let layers = [layer("0", 32, 48), layer("1", 64, 24), layer("2", 128, 12)];
    let part =
        |part: fn(&(String, String, String)) -> &String| layers.iter().map(part).cloned().collect::<String>();
    let text = format!("graph {{\n{}{}{}}}", part(|own| &own.0), part(|own| &own.1), part(|own| &own.2))
        .replace("c_", "c");
    let printed =
        emit(Bytes::from(text), &Options::new("layers", LEVELS), Emit::Cpp).expect("the graph compiles");
    let count = |word: &str| printed.matches(word).count();
    assert_eq!(
        [
            count(" conv_winograd<"),
            count("static AOTI_NOINLINE void k_"),
            count("_sized(run, in0, in1, out0, ")
        ],
        [1, 4, 3],
        "{printed}"
    );
    // A kernel that is alone has its sizes as constants.
    let alone = format!("graph {{\n{}{}{}}}", layers[0].0, layers[0].1, layers[0].2).replace("c_", "c");
    let printed =
        emit(Bytes::from(alone), &Options::new("layer", LEVELS), Emit::Cpp).expect("the graph compiles");
    assert!(printed.contains("{1, 32, 32, 1, {1, 48, 48}") && !printed.contains("_sized"), "{printed}");
}

/// A loop says how many steps it has, where that is known, and is shared among threads where a run may do that.
#[test]
fn loops_are_printed_for_the_sizes_that_they_have() {
    let printed = |size: &str| {
        let text = format!(
            "graph {{ symbol s0 \"n\" in 1..1000000 from input 1 axis 0 input %x \"x\": f32[{size}] input %n \"n\": f32[s0]
             %y: f32[{size}] = tanh %x output %y }}"
        );
        let options = Options::new("loops", LEVELS);
        emit(Bytes::from(text), &options, Emit::Cpp).expect("the graph compiles")
    };
    let small = printed("24");
    assert!(small.contains("over<AOTI_LANES, 24>(0, 24, ") && !small.contains("parallel("), "{small}");
    let large = printed("100000");
    let call = "over<AOTI_LANES, 100000>(begin * chunk, min_i64(end * chunk, extent), ";
    assert!(large.contains(call) && large.contains("parallel(run, ceil_div(extent, chunk), "), "{large}");
    let open = printed("s0");
    assert!(open.contains("over<AOTI_LANES>(begin * chunk, ") && open.contains("parallel("), "{open}");
}

/// What a kernel reads or writes across memory goes through blocks, so that each cache line is met once.
#[test]
fn rows_between_planes_are_turned_in_blocks() {
    let printed = |text: &str| {
        let options = Options::new("turned", LEVELS);
        emit(Bytes::from(text.to_owned()), &options, Emit::Cpp).expect("the graph compiles")
    };
    let planes = "graph { input %x \"x\": f32[1, 24, 64, 64] input %r \"r\": f32[1, 64, 64, 24]
         %t: f32[1, 64, 64, 24] = view %x [i0, i3, i1, i2] %s: f32[1, 64, 64] = sum %t axes [3]
         %v: f32[1, 64, 64, 24] = view %s [i0, i1, i2] %y: f32[1, 64, 64, 24] = div %t, %v
         %z: f32[1, 64, 64, 24] = add %y, %r output %z }";
    let text = printed(planes);
    assert!(text.contains("TurnedLoads<24> block0;") && !text.contains("load_strided"), "{text}");
    let convolution = "graph { const c0: f32[48, 32, 1, 1] = random 1 const c1: f32[48, 1, 3, 3] = random 2
         input %x \"x\": f32[1, 32, 64, 64] %w: f32[48, 32, 1, 1] = constant c0
         %y: f32[1, 48, 64, 64] = conv %x, %w stride [1, 1] padding [0:0, 0:0] dilation [1, 1] groups 1 output_padding [0, 0]
         %t: f32[1, 64, 64, 48] = view %y [i0, i3, i1, i2] %s: f32[1, 64, 64, 48] = tanh %t output %s }";
    let text = printed(convolution);
    assert!(!text.contains("store_strided"), "{text}");
}

/// Convolutions of few channels a group know what their tiles follow from.
#[test]
fn few_channels_a_group_are_multiplied_by_vectors_of_several_groups() {
    let printed = |channels: usize, own: usize, results: usize, dilation: usize| {
        let (groups, all) = (channels / own, channels / own * results);
        let text = format!(
            "graph {{ const c0: f32[{channels}, 16, 1, 1] = random 1 const c1: f32[{all}, {own}, 3, 3] = random 2
             input %x: f32[1, 16, 56, 56] %v: f32[{channels}, 16, 1, 1] = constant c0
             %w: f32[{all}, {own}, 3, 3] = constant c1
             %a: f32[1, {channels}, 56, 56] = conv %x, %v stride [1, 1] padding [0:0, 0:0] dilation [1, 1] groups 1 output_padding [0, 0]
             %y: f32[1, {all}, 28, 28] = conv %a, %w stride [2, 2] padding [{dilation}:{dilation}, {dilation}:{dilation}] dilation [{dilation}, {dilation}] groups {groups} output_padding [0, 0]
             %s: f32[1, {all}] = sum %y axes [2, 3] output %s }}"
        );
        emit(Bytes::from(text), &Options::new("groups", LEVELS), Emit::Cpp).expect("the graph compiles")
    };
    let has = |text: &str, shape: &str| text.contains(&format!("conv_group_pixels<GroupShape<{shape}>>("));
    assert!(has(&printed(64, 4, 4, 1), "4, 4, 3, 2, 28, true"), "{}", printed(64, 4, 4, 1));
    assert!(has(&printed(40, 1, 1, 1), "1, 1, 3, 2, 28, false"));
    assert!(has(&printed(32, 1, 2, 1), "1, 2, 3, 2, 28, true"));
    assert!(has(&printed(128, 8, 8, 1), "8, 8, 3, 2, 0, true"), "pixels are some lines each");
    assert!(has(&printed(128, 16, 16, 1), "16, 16, 3, 2, 28, true"));
    assert!(printed(128, 1, 1, 1).contains("conv_depthwise_pixels("), "of these it reads fewer at a time");
    assert!(has(&printed(128, 1, 2, 1), "1, 2, 3, 2, 0, true"), "that is for one result of each channel");
    assert!(!printed(96, 32, 32, 1).contains("conv_group_pixels"), "groups fill tiles of other templates");
    assert!(!printed(64, 4, 4, 2).contains("conv_group_pixels"), "taps lie apart");
}

#[test]
fn numbers_of_one_byte_are_rounded_moved_and_limited_by_one_function() {
    let printed = |larger: &str, [zero, highest]: [f64; 2]| {
        let model = format!(
            "graph \"quantise\" {{
              input %x \"x\": f32[40]
              %r: f32[40] = round %x
              %z: f32[40] = full {zero:?}
              %moved: f32[40] = add %r, %z
              %low: f32[40] = full 0.0
              %above: f32[40] = {larger} %moved, %low
              %high: f32[40] = full {highest:?}
              %limited: f32[40] = minimum %above, %high
              %y: u8[40] = cast %limited
              output %y \"y\"
            }}"
        );
        let options = Options::new("quantise", ["x86-64-v4"]);
        let text = emit(Bytes::from(model), &options, Emit::Cpp).expect("the graph compiles");
        (text.contains("quantised<u8>("), text.contains("round("))
    };
    assert_eq!(printed("maximum", [3.0, 255.0]), (true, false));
    assert_eq!(printed("fmax", [3.0, 255.0]), (true, false), "what is not a number is 0");
    assert_eq!(printed("maximum", [3.5, 255.0]), (false, true), "a zero point is an integer");
    assert_eq!(printed("maximum", [3.0, 250.0]), (false, true), "the limits are those of the type");
}
