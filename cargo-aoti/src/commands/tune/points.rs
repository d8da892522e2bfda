//! The sizes that a model is measured at: those of the command line, else those that the manifest calls typical, else those of
//! its inputs, else the smallest.

use std::path::Path;

use aoti_build::{Model, Session};
use aoti_compiler::cost::MachineInfo;

use super::Arguments;
use super::plan::Planned;
use crate::failure::Failure;
use aoti_tune::machine;

/// Sizes at which all kernels of a model are measured.
#[derive(Clone, PartialEq, Eq, Default, Debug)]
pub(super) struct Point {
    /// Of open dimensions, by name; others have the smallest, or those of the inputs that are given.
    pub(super) dims: Vec<(String, i64)>,
    /// Of each input; none where all that is measured has fixed sizes.
    pub(super) inputs: Vec<Vec<i64>>,
}

impl Point {
    /// Such as ` at batch=8`; empty where no size was asked for.
    pub(super) fn text(&self) -> String {
        let dims: Vec<String> = self.dims.iter().map(|(name, size)| format!("{name}={size}")).collect();
        if dims.is_empty() { String::new() } else { format!(" at {}", dims.join(", ")) }
    }
}

/// The points of a model, at least one; `model` is it as it is built for this machine alone, and `weights` the folder where
/// its weights lie for all that is measured.
pub(super) fn points(
    arguments: &Arguments,
    session: &Session,
    planned: &Planned,
    model: &Model,
    weights: &Path,
) -> Result<Vec<Point>, Failure> {
    let mut points: Vec<Point> =
        dims(arguments, planned).into_iter().map(|dims| Point { dims, inputs: Vec::new() }).collect();
    let has_open_sizes = || -> Result<bool, Failure> {
        Ok(session
            .tuning_points(model, MachineInfo::default())?
            .iter()
            .any(|kernel| !kernel.sizes.is_empty()))
    };
    if arguments.dry_run || !has_open_sizes()? {
        // Nothing that is measured tells one point from another.
        points.truncate(1);
        return Ok(points);
    }
    let info = machine::signature(session, model, weights)?;
    for point in &mut points {
        let file = planned.file(arguments);
        let inputs = crate::commands::run::inputs(&info, file, &point.dims)?;
        let sizes = inputs.iter().map(|input| input.sizes().iter().map(|size| *size as i64).collect());
        point.inputs = sizes.collect();
    }
    Ok(points)
}

/// Open dimensions with their sizes, for each point.
fn dims(arguments: &Arguments, planned: &Planned) -> Vec<Vec<(String, i64)>> {
    if !arguments.dim.is_empty() {
        return combinations(&arguments.dim);
    }
    let typical = &planned.model.sizes;
    if typical.is_empty() || planned.file(arguments).is_some() {
        return vec![Vec::new()];
    }
    let named = |(name, size): (&String, &u32)| (name.clone(), i64::from(*size));
    typical.iter().map(|sizes| sizes.iter().map(named).collect()).collect()
}

/// Each dimension with one of the sizes that it is given, in all ways.
fn combinations(given: &[(String, i64)]) -> Vec<Vec<(String, i64)>> {
    let mut names: Vec<&String> = Vec::new();
    given.iter().for_each(|(name, _)| {
        if !names.contains(&name) {
            names.push(name);
        }
    });
    let mut all: Vec<Vec<(String, i64)>> = vec![Vec::new()];
    for name in names {
        let with = |point: &Vec<(String, i64)>| {
            let sizes = given.iter().filter(|(own, _)| own == name).cloned();
            sizes.map(|own| point.iter().cloned().chain([own]).collect::<Vec<_>>()).collect::<Vec<_>>()
        };
        all = all.iter().flat_map(with).collect();
    }
    all
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn sizes_that_are_given_for_one_dimension_make_points() {
        let given = [("b", 1), ("t", 7), ("b", 64)].map(|(name, size)| (name.to_owned(), size));
        let points = combinations(&given);
        let texts: Vec<String> =
            points.into_iter().map(|dims| Point { dims, inputs: Vec::new() }.text()).collect();
        assert_eq!(texts, [" at b=1, t=7", " at b=64, t=7"]);
        assert_eq!(combinations(&[]), [vec![]]);
    }
}
