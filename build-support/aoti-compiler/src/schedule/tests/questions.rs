//! Which decisions are questions, and what records of answers do.

use super::*;

/// A product with an epilogue that a loop of its own may compute as fast, behind `before` and with other names.
fn heavy_epilogue(before: &str, name: &str, rows: i64) -> String {
    format!(
        r#"const c0 "{name}": f32[64, 48] = splat 0.5
        {before}
        input %x "{name}_in": f32[{rows}, 64]
        %w: f32[64, 48] = constant c0
        %p: f32[{rows}, 48] = matmul %x, %w
        %half: f32[{rows}, 48] = full 0.5
        %one: f32[{rows}, 48] = full 1.0
        %root: f32[{rows}, 48] = full 0.7071
        %a: f32[{rows}, 48] = mul %p, %half
        %b: f32[{rows}, 48] = mul %p, %root
        %c: f32[{rows}, 48] = erf %b
        %d: f32[{rows}, 48] = add %c, %one
        %y: f32[{rows}, 48] = mul %a, %d
        output %y "{name}_out""#
    )
}

#[test]
fn a_close_call_of_fusion_is_a_question_and_the_first_answer_is_the_default() {
    let body = heavy_epilogue("", "a", 6);
    check(&body, &["matmul (6, 48)"]);
    let [pair] = &asked(&body)[..] else { panic!("one question") };
    assert_eq!((fusion_choice(pair), pair.taken), (vec![FusionChoice::Fuse, FusionChoice::Separate], 0));
    assert!(!pair.answers[1].is_shared);
    // What there is beside it, and names, are no part of its key; sizes are.
    let before = "input %o \"o\": f32[7]\n%n: f32[7] = neg %o\noutput %n \"n\"";
    assert_eq!(asked(&heavy_epilogue(before, "b", 6))[0].key, pair.key);
    assert_ne!(asked(&heavy_epilogue("", "a", 7))[0].key, pair.key);
    // A sum that goes without saying is none.
    assert_eq!(asked(SOFTMAX), []);
}

#[test]
fn what_keeps_all_threads_busy_is_worth_a_question() {
    let [pair] = &asked(LARGE_REDUCTION)[..] else { panic!("one question") };
    assert_eq!(fusion_choice(pair), [FusionChoice::Separate, FusionChoice::Fuse]);
    let prices = Target::cpu(&["x86-64-v3"]).prices();
    let cost = |way: usize| prices.total(&pair.answers[way].cost);
    assert!(cost(1) < cost(0), "on one thread it is better to read once");
    let graph = graph_of(LARGE_REDUCTION);
    let target = Target::cpu(&["x86-64-v3"]);
    let mut records = Records::none();
    records.set(pair.key.clone(), Setting::Pair(FusionChoice::Fuse));
    let own = scheduled_for(&graph, &target, &records);
    assert_eq!((own.schedule.program.kernels.len(), own.asked[0].taken), (1, 1));
    records.set(pair.key.clone(), Setting::Pair(FusionChoice::Separate));
    let own = scheduled_for(&graph, &target, &records);
    assert_eq!(own.explanations[0].refusal, Some(Refusal::Measured));
    let costs = own.explanations[0].costs.expect("they could be one");
    assert_eq!([costs.apart, costs.fused], [0, 1].map(cost));
}

#[test]
fn what_became_one_kernel_is_said_with_its_costs() {
    let explanations = scheduled(SOFTMAX).1;
    let fused = explanations.iter().find(|own| own.refusal.is_none()).expect("a softmax is one kernel");
    let costs = fused.costs.expect("loops have a cost");
    assert!(costs.fused < costs.apart, "{costs:?}");
    let text = fused.to_string();
    assert!(
        text.starts_with(&format!("{} + {}: one kernel; costs ", fused.producer, fused.consumer)),
        "{text}"
    );
    let apart = Explanation { refusal: Some(Refusal::Measured), ..fused.clone() }.to_string();
    assert!(apart.contains("they were measured to be faster apart; costs "), "{apart}");
}

/// A product with a softmax over its rows.
const FINISHED_ROWS: &str = r#"
    input %x "x": f32[200, 64]
    input %w "w": f32[64, 48]
    %p: f32[200, 48] = matmul %x, %w
    %m: f32[200] = max %p axes [1]
    %mm: f32[200, 48] = view %m [i0]
    %d: f32[200, 48] = sub %p, %mm
    %e: f32[200, 48] = exp %d
    %s: f32[200] = sum %e axes [1]
    %ss: f32[200, 48] = view %s [i0]
    %y: f32[200, 48] = div %e, %ss
    output %y "y"
"#;

#[test]
fn whether_a_product_finishes_its_rows_is_a_question() {
    let (program, _) = scheduled(FINISHED_ROWS);
    let [pair] = &asked(FINISHED_ROWS)[..] else { panic!("one question") };
    assert_eq!(
        (program.kernels.len(), fusion_choice(pair)),
        (1, vec![FusionChoice::Fuse, FusionChoice::Separate])
    );
    let graph = graph_of(FINISHED_ROWS);
    let target = Target::cpu(&["x86-64-v3"]);
    let mut records = Records::none();
    records.set(pair.key.clone(), Setting::Pair(FusionChoice::Separate));
    let apart = scheduled_for(&graph, &target, &records);
    assert_eq!((apart.schedule.program.kernels.len(), apart.asked[0].taken), (2, 1));
    gives_the_same(&graph, &apart.schedule);
}

#[test]
fn on_gpus_pairs_are_questions_too() {
    let target = gpu();
    for (body, first) in [(heavy_epilogue("", "a", 6), 1), (LARGE_REDUCTION.to_owned(), 2)] {
        let graph = graph_of(&body);
        let run = |records: &Records| scheduled_for(&graph, &target, records);
        let Outcome { schedule, asked, .. } = run(&Records::none());
        let [pair] = &asked[..] else { panic!("one question: {asked:?}") };
        assert_eq!(schedule.program.kernels.len(), first);
        let kernels: Vec<usize> = pair
            .answers
            .iter()
            .map(|answer| {
                let mut records = Records::none();
                records.set(pair.key.clone(), answer.config.clone());
                let own = run(&records).schedule;
                assert_eq!(verify(&own), Vec::<String>::new());
                gives_the_same(&graph, &own);
                own.program.kernels.len()
            })
            .collect();
        assert_eq!(kernels, [first, 3 - first], "the first is the default");
    }
}

/// A softmax over rows of 96, whose input two stages read.
const READ_TWICE: &str = r#"
    input %x "x": f32[5, 96]
    %m: f32[5] = max %x axes [1]
    %mm: f32[5, 96] = view %m [i0]
    %d: f32[5, 96] = sub %x, %mm
    %e: f32[5, 96] = exp %d
    %s: f32[5] = sum %e axes [1]
    %ss: f32[5, 96] = view %s [i0]
    %y: f32[5, 96] = div %e, %ss
    output %y "y"
"#;

#[test]
fn where_rows_are_kept_on_gpus_can_be_measured() {
    let (graph, target) = (graph_of(READ_TWICE), gpu());
    let Outcome { schedule, asked, .. } = scheduled_for(&graph, &target, &Records::none());
    let [question] = &asked[..] else { panic!("one question: {asked:?}") };
    let settings: Vec<String> = question.answers.iter().map(|answer| answer.config.to_string()).collect();
    assert_eq!(settings, ["rows-kept", "rows-read-again"]);
    let prices = target.prices();
    assert!(prices.total(&question.answers[0].cost) < prices.total(&question.answers[1].cost));
    other_answers_give_the_same(&graph, &target, &asked);
    // The kernel that keeps them has two ways, and a key that is not that of the question.
    let kernel = schedule.program.kernels.values().next().expect("one kernel");
    let all = implementations(&schedule.program, kernel, &graph.ranges(), &target);
    let settings: Vec<String> = all.iter().map(|way| way.setting().to_string()).collect();
    assert_eq!(settings, ["loops team 32 rows registers", "loops team 32 rows shared"]);
    assert!(settings.iter().zip(&all).all(|(text, way)| text.parse() == Ok(way.setting())));
    assert!(prices.total(&all[0].cost) < prices.total(&all[1].cost));
    other_ways_give_the_same(&graph, &schedule);
    let mut records = Records::none();
    records.set(question.key.clone(), question.answers[1].config.clone());
    let again = scheduled_for(&graph, &target, &records).schedule;
    let kernel = again.program.kernels.values().next().expect("one kernel");
    assert_ne!(TuningKey::of(&again.program, kernel, &target), question.key);
}

/// Trap 28: which kernels there are depends on pairs, and records of both lie side by side: one of a kernel that there is
/// no more, or of a pair whose kernels are others now, is passed over.
#[test]
fn records_of_pairs_and_of_the_kernels_that_they_make_do_not_nest() {
    let graph = graph_of(&heavy_epilogue("", "a", 6));
    let (target, mut records) = (Target::cpu(&["x86-64-v3"]), Records::none());
    let run = |records: &Records| scheduled_for(&graph, &target, records).schedule;
    let Outcome { schedule: first, asked, .. } = scheduled_for(&graph, &target, &records);
    let keys = |schedule: &Schedule| -> Vec<TuningKey> {
        let program = &schedule.program;
        program.kernels.values().map(|kernel| TuningKey::of(program, kernel, &target)).collect()
    };
    let kernel = first.program.kernels.values().next().expect("one kernel");
    let all = implementations(&first.program, kernel, &graph.ranges(), &target);
    records.set(keys(&first)[0].clone(), all[1].setting());
    let tuned = run(&records);
    assert_ne!(tuned.mappings, first.mappings, "the record of the joint kernel counts");
    records.set(asked[0].key.clone(), Setting::Pair(FusionChoice::Separate));
    let apart = run(&records);
    assert_eq!(apart.program.kernels.len(), 2);
    assert!(
        keys(&apart).iter().all(|key| records.get(key).is_none()),
        "it is of a kernel that there is no more"
    );
    gives_the_same(&graph, &apart);
    records.set(asked[0].key.clone(), Setting::Pair(FusionChoice::Fuse));
    assert_eq!(run(&records), tuned, "and counts again where it is back");
}
