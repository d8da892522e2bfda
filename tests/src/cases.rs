//! Cases that the tests make: small models with inputs and the outputs that they must give.

use crate::models;
use crate::native;
use crate::project::Project;

/// One tensor of f32 in the safetensors format.
pub fn safetensors(sizes: &[usize], values: &[f32]) -> Vec<u8> {
    let data: Vec<u8> = values.iter().flat_map(|value| value.to_le_bytes()).collect();
    let header =
        format!("{{\"0\":{{\"dtype\":\"F32\",\"shape\":{sizes:?},\"data_offsets\":[0,{}]}}}}", data.len());
    [&(header.len() as u64).to_le_bytes()[..], header.as_bytes(), &data].concat()
}

/// Rows of three ones, scaled: a case below `cases/` that passes if these are the expected values.
pub fn scaled(project: &Project, name: &str, model: &str, expected: &[f32]) {
    project.write(&format!("cases/{name}/model.aoti"), model);
    project.write(&format!("cases/{name}/inputs.safetensors"), safetensors(&[1, 3], &[1.0, 1.0, 1.0]));
    project.write(&format!("cases/{name}/outputs.safetensors"), safetensors(&[1, 3], expected));
}

/// The example's network on five pictures, with what the interpreter gives for them.
pub fn digits(project: &Project) {
    let input = native::numbers(&[5, 1, 8, 8], 7);
    let expected = native::reference(&models::digits(), &input);
    let model = std::fs::read(models::digits()).expect("the example has its model");
    let elements = input.as_slice::<f32>().expect("inputs are f32");
    project.write("cases/digits/model.pt2", model);
    project.write("cases/digits/inputs.safetensors", safetensors(input.sizes(), elements));
    project.write("cases/digits/outputs.safetensors", safetensors(&[5, 10], &expected));
}
