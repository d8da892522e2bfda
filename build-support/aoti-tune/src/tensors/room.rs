//! How large outputs are, for memory that is made before a run.

use aoti_runtime::{AnyView, DynTensor, Error, Model};

/// The sizes that outputs need for these inputs. Where only a run tells them, one is made.
///
/// # Errors
/// Inputs that the model does not take, and what goes wrong in the run.
pub fn for_outputs(model: &Model, inputs: &[DynTensor]) -> Result<Vec<Vec<usize>>, Error> {
    let views: Vec<AnyView<'_>> = inputs.iter().map(DynTensor::view).collect();
    let sizes = model.output_sizes(&views)?;
    if !sizes.iter().flatten().any(|size| *size == usize::MAX) {
        return Ok(sizes);
    }
    let mut outputs: Vec<DynTensor> =
        model.info().outputs.iter().map(|output| DynTensor::empty(output.dtype)).collect();
    let mut targets: Vec<&mut DynTensor> = outputs.iter_mut().collect();
    let mut state = if model.info().state_bytes > 0 { Some(model.state()?) } else { None };
    model.run_shared(&views, &mut targets, state.as_mut())?;
    Ok(outputs.iter().map(|output| output.sizes().to_vec()).collect())
}
