//! What is read or written where an index from data says, next to what computes it. An axis of one element has one place,
//! and a rule that takes the place for the index is wrong about everything around it.

use super::*;

/// A product that is looked up along an axis of so many elements.
fn looked_up(size: i64, index: &str) -> String {
    format!(
        "input %x \"x\": f32[6, {size}]
         input %i \"i\": i64[6, {size}]
         %one: i64[6, {size}] = full {size}
         %j: i64[6, {size}] = remainder %i, %one
         %c: f32[6, {size}] = full 0.25
         %p: f32[6, {size}] = mul %x, %c
         %g: f32[6, {size}] = gather %p, %j [{index}]
         %y: f32[6, {size}] = sub %g, %c
         output %y \"y\""
    )
}

/// A product that is added up where its own elements say, and a function of the sums.
fn scattered(sums: &str, product: &str, element: &str, index: &str) -> String {
    format!(
        "input %a \"a\": f32{sums}
         {product}
         %n: i64{element} = cast %p
         %one: i64{element} = full 1
         %i: i64{element} = remainder %n, %one
         %z: f32{element} = full 0.0
         %s: f32{element} = scatter %z, %p, %i add [{index}]
         %c: f32{element} = full 0.25
         %y: f32{element} = mul %s, %c
         output %y \"y\""
    )
}

#[test]
fn lanes_share_no_row_of_one_element() {
    for (size, index) in [(1, "i0, wrap $0"), (1, "i0, $0"), (3, "i0, wrap $0"), (1, "wrap $0, i1")] {
        let body = if index.ends_with("i1") {
            looked_up(size, "i0, $0").replace("[i0, $0]", "[$0, i1]")
        } else {
            looked_up(size, index)
        };
        scheduled(&body);
        let on_gpu = scheduled_for(&graph_of(&body), &gpu(), &Records::none()).schedule;
        assert_eq!(verify(&on_gpu), Vec::<String>::new());
        gives_the_same(&graph_of(&body), &on_gpu);
    }
}

#[test]
fn positions_in_lanes_keep_no_rows() {
    let bad = r#"schedule cpu "x86-64-v3" {
      loops "m" {
        buffer b0: f32[6, 1] input 0
        buffer b1: i64[6, 1] input 1
        buffer b2: f32[6, 1] output 0
        buffer b3: f32[6, 1] row 1
        inputs [b0, b1] graph_inputs [b0, b1] outputs [b2]
        site "an index operator"
        kernel "p" {
          choose loops
          scratch [0, 64]
          map split chunks 1024 lanes outer grain [16384, 9216]
          call f0 of b0 [0] b1 [0] b2 [0] sizes []
          for [i0 < 6] {
            stage [] { t0: f32 = load b0[i0, 0] store b3[0] = t0 }
            stage [] {
              t0: i64 = load b1[i0, 0]
              t1: i64 = wrap t0 below [1] site 0
              t2: f32 = load b3[t1] by [t1: 1]
              store b2[i0, 0] = t2
            }
          }
        }
      }
      arena [0]
    }"#;
    let found = |text: &str| verify(&text::parse(text).unwrap_or_else(|error| panic!("{error}")));
    assert_eq!(found(bad), ["kernel `p`: the positions in its lanes share the rows of one worker"]);
    assert_eq!(found(&bad.replace("lanes outer", "lanes one")), Vec::<String>::new());
}

#[test]
fn sums_that_go_where_an_index_says_are_read_after_all_of_them() {
    let product = "input %b \"b\": f32[8, 1]\n %p: f32[1, 1] = matmul %a, %b";
    let bodies = [
        scattered("[1, 8]", product, "[1, 1]", "$0, i1"),
        scattered("[1, 8]", product, "[1, 1]", "i0, $0"),
        scattered("[5, 1]", "%p: f32[5, 1] = exp %a", "[5, 1]", "i0, $0"),
        scattered("[1, 1]", "%p: f32[1, 1] = exp %a", "[1, 1]", "$0, i1"),
        scattered("[5, 1, 8]", "%p: f32[5, 1] = sum %a axes [2]", "[5, 1]", "i0, $0"),
    ];
    for body in bodies {
        scheduled(&body);
        let graph = graph_of(&body);
        let on_gpu = scheduled_for(&graph, &gpu(), &Records::none()).schedule;
        assert_eq!(verify(&on_gpu), Vec::<String>::new());
        gives_the_same(&graph, &on_gpu);
    }
}

#[test]
fn an_index_is_checked_though_its_axis_has_one_element_and_becomes_a_part() {
    let (program, _) = scheduled(
        "input %x \"x\": f32[1, 4]
         input %i \"i\": i64[1, 4]
         input %r \"r\": f32[2, 4]
         %one: i64[1, 4] = full 1
         %j: i64[1, 4] = remainder %i, %one
         %e: f32[1, 4] = exp %x
         %z: f32[1, 4] = full 0.5
         %s: f32[1, 4] = scatter %z, %e, %j set [$0, i1]
         %y: f32[3, 4] = cat %s, %r axis 0
         output %y \"y\"",
    );
    let terms = program.kernels.values().flat_map(|kernel| kernel.stages()).flat_map(|stage| &stage.terms);
    let checks = terms.filter(|typed| matches!(typed.term, crate::loops::Term::CheckIndex { .. }));
    assert_eq!(checks.count(), 1);
}

#[test]
fn updates_run_in_order_but_for_what_keeps_them_apart() {
    let mapping = |base: &str, shape: &str, index: &str, coords: &str| {
        let body = format!(
            "input %x \"x\": f32{base}
             input %u \"u\": f32{shape}
             input %at \"at\": i64{shape}
             %three: i64{shape} = full 3
             %low: i64{shape} = remainder %at, %three
             %i: i64{shape} = view %low [{index}]
             %y: f32{base} = scatter %x, %u, %i add [{coords}]
             output %y \"y\""
        );
        scheduled(&body);
        let graph = graph_of(&body);
        let schedule = scheduled_for(&graph, &Target::cpu(&["x86-64-v3"]), &Records::none()).schedule;
        let kernels = schedule.program.kernels.iter();
        let mut serial =
            kernels.filter(|(_, kernel)| matches!(&kernel.kind, KernelKind::Nest(nest) if nest.serial));
        let (id, _) = serial.next().expect("a scatter");
        let Mapping::Cpu(own) = &schedule.mappings[id] else { panic!("of a processor") };
        (own.split, own.lanes)
    };
    // Rows at indices; each element at its own; along the last axis; and anything anywhere.
    assert_eq!(mapping("[3, 8]", "[5, 8]", "i0, 0", "$0, i1"), (Split::Chunks(32), Lanes::Outer));
    assert_eq!(mapping("[3, 8]", "[5, 8]", "i0, i1", "$0, i1"), (Split::Chunks(32), Lanes::Outer));
    assert_eq!(mapping("[8, 3]", "[8, 5]", "i0, i1", "i0, $0"), (Split::Axes(1), Lanes::One));
    assert_eq!(mapping("[2, 3, 8]", "[2, 5, 8]", "i0, i1, 0", "i0, $0, i2"), (Split::Axes(1), Lanes::Outer));
    assert_eq!(mapping("[3]", "[5]", "i0", "$0"), (Split::Serial, Lanes::One));
}
