//! Python stack traces, as exporters keep them beside calls.

struct Frame<'a> {
    path: &'a str,
    line: &'a str,
    function: &'a str,
    code: &'a str,
}

/// The innermost frame of the user's own code; where every frame is the library's, the innermost of those.
pub(crate) fn source(trace: &str) -> String {
    let frames = frames(trace);
    let written: Vec<&Frame> = frames.iter().filter(|frame| !frame.path.starts_with('<')).collect();
    let user = written.iter().rev().find(|frame| !is_library(frame.path)).or(written.last());
    user.map(|frame| {
        let file = frame.path.rsplit(['/', '\\']).next().unwrap_or(frame.path);
        let place = format!("{file}:{}", frame.line);
        match (frame.function, frame.code) {
            ("", "") => place,
            (function, "") => format!("{place} in {function}"),
            (function, code) => format!("{place} in {function}: {code}"),
        }
    })
    .unwrap_or_default()
}

fn is_library(path: &str) -> bool {
    let path = path.replace('\\', "/");
    path.contains("site-packages/torch/") || path.contains("dist-packages/torch/")
}

fn frames(trace: &str) -> Vec<Frame<'_>> {
    let mut frames: Vec<Frame> = Vec::new();
    for line in trace.lines() {
        let line = line.trim();
        if let Some(frame) = header(line) {
            frames.push(frame);
        } else if let Some(last) = frames.last_mut()
            && last.code.is_empty()
        {
            last.code = line;
        }
    }
    frames
}

/// `File "path", line N, in function`.
fn header(line: &str) -> Option<Frame<'_>> {
    let rest = line.strip_prefix("File \"")?;
    let (path, rest) = rest.split_once("\", line ")?;
    let (number, function) = rest.split_once(", in ").unwrap_or((rest, ""));
    number.bytes().all(|byte| byte.is_ascii_digit()).then_some(Frame {
        path,
        line: number,
        function,
        code: "",
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn innermost_user_frame_is_chosen() {
        let trace = "File \"/home/a/model.py\", line 12, in forward\n    return self.fc(x)\n  File \"/v/lib/python3.11/site-packages/torch/nn/modules/linear.py\", line 134, in forward\n    return F.linear(x)\n  File \"<eval_with_key>.2\", line 6, in forward\n    y = z";
        assert_eq!(source(trace), "model.py:12 in forward: return self.fc(x)");
        assert_eq!(source("garbage"), "");
    }
}
