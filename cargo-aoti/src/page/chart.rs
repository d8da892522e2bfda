//! Charts as SVG: time lines of rows, and points below the roofs of a machine.

use std::fmt::Write as _;

use super::escape;

/// Width of a chart.
const WIDTH: f64 = 1120.0;
/// Colours that marks may have.
pub(crate) const COLOURS: usize = 6;

/// A span of time in a row.
pub(crate) struct Span {
    pub(crate) row: usize,
    pub(crate) from: f64,
    pub(crate) to: f64,
    pub(crate) colour: usize,
    /// What it is, for whoever points at it.
    pub(crate) label: String,
    /// What is written into it where there is room.
    pub(crate) name: String,
}

/// Rows of spans over a common axis in a unit.
pub(crate) fn timeline(title: &str, rows: &[String], spans: &[Span], unit: &str) -> String {
    const ROW: f64 = 26.0;
    const TOP: f64 = 8.0;
    let longest = rows.iter().map(|row| row.chars().count()).max().unwrap_or(0);
    let left = (longest as f64 * 7.0 + 16.0).clamp(60.0, 260.0);
    let end = spans.iter().fold(0.0, |end: f64, span| end.max(span.to)).max(1e-9);
    let scale = (WIDTH - left - 12.0) / end;
    let bottom = TOP + ROW * rows.len() as f64;
    let mut svg = open(title, WIDTH, bottom + 30.0);
    for tick in ticks(end) {
        let x = left + tick * scale;
        put(
            &mut svg,
            format_args!("<line class=\"grid\" x1=\"{x:.1}\" x2=\"{x:.1}\" y1=\"{TOP}\" y2=\"{bottom}\"/>"),
        );
        let text = short(tick);
        put(
            &mut svg,
            format_args!(
                "<text class=\"dim\" x=\"{x:.1}\" y=\"{:.1}\" text-anchor=\"middle\">{text}</text>",
                bottom + 18.0
            ),
        );
    }
    put(
        &mut svg,
        format_args!(
            "<text class=\"dim\" x=\"{:.1}\" y=\"{:.1}\" text-anchor=\"end\">{}</text>",
            left - 10.0,
            bottom + 18.0,
            escape(unit)
        ),
    );
    for (position, row) in rows.iter().enumerate() {
        let y = TOP + ROW * position as f64 + 17.0;
        let text = escape(&cut(row, ((left - 16.0) / 7.0) as usize));
        put(
            &mut svg,
            format_args!("<text x=\"{:.1}\" y=\"{y:.1}\" text-anchor=\"end\">{text}</text>", left - 10.0),
        );
    }
    for span in spans {
        let (x, width) = (left + span.from * scale, ((span.to - span.from) * scale).max(0.8));
        let y = TOP + ROW * span.row as f64 + 3.0;
        put(
            &mut svg,
            format_args!(
                "<rect class=\"f{}\" x=\"{x:.2}\" y=\"{y:.1}\" width=\"{width:.2}\" height=\"{}\" rx=\"2\"><title>{}</title></rect>",
                span.colour % COLOURS,
                ROW - 6.0,
                escape(&span.label)
            ),
        );
        let room = ((width - 8.0) / 6.6) as usize;
        if room >= 4 && !span.name.is_empty() {
            let name = escape(&cut(&span.name, room));
            put(
                &mut svg,
                format_args!(
                    "<text x=\"{:.1}\" y=\"{:.1}\" style=\"fill:var(--ground)\" pointer-events=\"none\">{name}</text>",
                    x + 4.0,
                    y + 14.0
                ),
            );
        }
    }
    close(svg)
}

/// A point of a roofline: how much it computes for each byte, and how fast.
pub(crate) struct Point {
    pub(crate) per_byte: f64,
    pub(crate) rate: f64,
    /// The part of the whole that it takes, which its size shows.
    pub(crate) share: f64,
    pub(crate) label: String,
    pub(crate) is_bad: bool,
}

/// Points below what a machine computes at most, and what it reads at most from each level: a name and billions of bytes.
pub(crate) fn roofline(title: &str, points: &[Point], peak: f64, levels: &[(String, f64)]) -> String {
    const HEIGHT: f64 = 420.0;
    const LEFT: f64 = 70.0;
    const TOP: f64 = 16.0;
    let fastest = levels.iter().map(|(_, rate)| *rate).fold(1e-3, f64::max);
    let xs = points.iter().map(|point| point.per_byte).filter(|x| *x > 0.0);
    let (least, most) = xs.fold((peak / fastest, peak / fastest), |(a, b), x| (a.min(x), b.max(x)));
    let most = levels.iter().map(|(_, rate)| peak / rate).fold(most, f64::max);
    let (x0, x1) = ((least / 2.0).log10().floor(), (most * 2.0).log10().ceil());
    let ys = points.iter().map(|point| point.rate).filter(|y| *y > 0.0).fold(peak, f64::min);
    let highest = points.iter().map(|point| point.rate).fold(peak, f64::max);
    let (y0, y1) = (ys.log10().floor(), (highest * 1.3).log10().ceil());
    let x = |value: f64| LEFT + (value.log10() - x0) / (x1 - x0) * (WIDTH - LEFT - 20.0);
    let y = |value: f64| TOP + (y1 - value.log10()) / (y1 - y0) * (HEIGHT - TOP - 44.0);
    let bottom = y(10f64.powf(y0));
    let mut svg = open(title, WIDTH, HEIGHT);
    decades(&mut svg, (&x, &y), [x0, x1, y0, y1]);
    let middle = (LEFT + WIDTH) / 2.0;
    put(
        &mut svg,
        format_args!(
            "<text class=\"dim\" x=\"{middle:.1}\" y=\"{:.1}\" text-anchor=\"middle\">operations for each byte that is read or written</text>",
            bottom + 36.0
        ),
    );
    put(
        &mut svg,
        format_args!(
            "<text class=\"dim\" x=\"16\" y=\"{:.1}\" text-anchor=\"middle\" transform=\"rotate(-90 16 {:.1})\">GFLOP/s</text>",
            HEIGHT / 2.0 - 20.0,
            HEIGHT / 2.0 - 20.0
        ),
    );
    roofs(&mut svg, (&x, &y), (10f64.powf(x0), 10f64.powf(x1), 10f64.powf(y0)), peak, levels);
    for point in points.iter().filter(|point| point.per_byte > 0.0 && point.rate > 0.0) {
        let (radius, class) =
            (4.0 + 14.0 * point.share.clamp(0.0, 1.0).sqrt(), if point.is_bad { "fbad" } else { "f0" });
        put(
            &mut svg,
            format_args!(
                "<circle class=\"{class}\" cx=\"{:.1}\" cy=\"{:.1}\" r=\"{radius:.1}\" fill-opacity=\"0.75\"><title>{}</title></circle>",
                x(point.per_byte),
                y(point.rate),
                escape(&point.label)
            ),
        );
    }
    close(svg)
}

/// Lines at powers of ten from the first to the second number, across and upwards, with what they are.
fn decades(svg: &mut String, (x, y): Axes<'_>, [x0, x1, y0, y1]: [f64; 4]) {
    let (left, right) = (x(10f64.powf(x0)), x(10f64.powf(x1)));
    let (top, bottom) = (y(10f64.powf(y1)), y(10f64.powf(y0)));
    for decade in x0 as i32..=x1 as i32 {
        let (at, text) = (x(10f64.powi(decade)), short(10f64.powi(decade)));
        put(
            svg,
            format_args!(
                "<line class=\"grid\" x1=\"{at:.1}\" x2=\"{at:.1}\" y1=\"{top:.1}\" y2=\"{bottom:.1}\"/>\
                 <text class=\"dim\" x=\"{at:.1}\" y=\"{:.1}\" text-anchor=\"middle\">{text}</text>",
                bottom + 16.0
            ),
        );
    }
    for decade in y0 as i32..=y1 as i32 {
        let (at, text) = (y(10f64.powi(decade)), short(10f64.powi(decade)));
        put(
            svg,
            format_args!(
                "<line class=\"grid\" x1=\"{left:.1}\" x2=\"{right:.1}\" y1=\"{at:.1}\" y2=\"{at:.1}\"/>\
                 <text class=\"dim\" x=\"{:.1}\" y=\"{:.1}\" text-anchor=\"end\">{text}</text>",
                left - 8.0,
                at + 4.0
            ),
        );
    }
}

type Axes<'a> = (&'a dyn Fn(f64) -> f64, &'a dyn Fn(f64) -> f64);

/// The lines that no kernel is above, each from the left edge to where computing is the limit.
fn roofs(
    svg: &mut String,
    (x, y): Axes<'_>,
    (left, right, lowest): (f64, f64, f64),
    peak: f64,
    levels: &[(String, f64)],
) {
    let highest = levels.iter().map(|(_, rate)| peak / rate).fold(f64::INFINITY, f64::min);
    let from = if highest.is_finite() { highest } else { left };
    put(svg, format_args!("<path class=\"roof\" d=\"M{:.1} {:.1}H{:.1}\"/>", x(from), y(peak), x(right)));
    put(
        svg,
        format_args!(
            "<text x=\"{:.1}\" y=\"{:.1}\" text-anchor=\"end\">{} GFLOP/s</text>",
            x(right) - 6.0,
            y(peak) - 6.0,
            short(peak)
        ),
    );
    // Of levels that are about equally fast the lines would hide each other's names.
    let mut lines: Vec<(String, f64)> = Vec::new();
    for (name, rate) in levels {
        match lines.last_mut().filter(|(_, before)| *before < rate * 1.3) {
            Some((names, _)) => names.push_str(&format!(", {name}")),
            None => lines.push((name.clone(), *rate)),
        }
    }
    for (number, (name, rate)) in lines.iter().enumerate() {
        let ridge = peak / rate;
        // Where the line meets the lower edge, if it does before the left one.
        let start = left.max(lowest / rate);
        let (x0, y0, x1, y1) = (x(start), y(start * rate), x(ridge), y(peak));
        put(
            svg,
            format_args!(
                "<path class=\"roof\" stroke-dasharray=\"{}\" d=\"M{x0:.1} {y0:.1}L{x1:.1} {y1:.1}\"/>",
                if number == 0 { "none" } else { "5 4" }
            ),
        );
        let angle = (y1 - y0).atan2(x1 - x0).to_degrees();
        // Names are spread along their lines, which lie close to each other.
        let part = 0.2 + 0.18 * number as f64 % 0.7;
        let (px, py) = (x0 + (x1 - x0) * part, y0 + (y1 - y0) * part - 5.0);
        put(
            svg,
            format_args!(
                "<text class=\"dim\" x=\"{px:.1}\" y=\"{py:.1}\" transform=\"rotate({angle:.1} {px:.1} {py:.1})\">{} {} GB/s</text>",
                escape(name),
                short(*rate)
            ),
        );
    }
}

/// Rectangles over time and height, such as buffers in an arena: from, to, low, high, colour and label.
pub(crate) struct Block {
    pub(crate) from: f64,
    pub(crate) to: f64,
    pub(crate) low: f64,
    pub(crate) high: f64,
    pub(crate) label: String,
    pub(crate) name: String,
}

/// Blocks over steps and bytes.
pub(crate) fn blocks(
    title: &str,
    blocks: &[Block],
    (steps, height): (f64, f64),
    format: &dyn Fn(f64) -> String,
) -> String {
    const LEFT: f64 = 90.0;
    const TOP: f64 = 12.0;
    const BOTTOM: f64 = 372.0;
    let (across, up) = ((WIDTH - LEFT - 12.0) / steps.max(1.0), (BOTTOM - TOP) / height.max(1.0));
    let mut svg = open(title, WIDTH, BOTTOM + 40.0);
    for tick in ticks(height) {
        let y = BOTTOM - tick * up;
        put(
            &mut svg,
            format_args!(
                "<line class=\"grid\" x1=\"{LEFT}\" x2=\"{:.1}\" y1=\"{y:.1}\" y2=\"{y:.1}\"/>",
                WIDTH - 12.0
            ),
        );
        put(
            &mut svg,
            format_args!(
                "<text class=\"dim\" x=\"{:.1}\" y=\"{:.1}\" text-anchor=\"end\">{}</text>",
                LEFT - 8.0,
                y + 4.0,
                escape(&format(tick))
            ),
        );
    }
    for tick in ticks(steps) {
        let x = LEFT + tick * across;
        put(
            &mut svg,
            format_args!(
                "<text class=\"dim\" x=\"{x:.1}\" y=\"{:.1}\" text-anchor=\"middle\">{}</text>",
                BOTTOM + 16.0,
                short(tick)
            ),
        );
    }
    put(
        &mut svg,
        format_args!(
            "<text class=\"dim\" x=\"{:.1}\" y=\"{:.1}\" text-anchor=\"middle\">kernels in the order in which they run</text>",
            (LEFT + WIDTH) / 2.0,
            BOTTOM + 34.0
        ),
    );
    for (number, block) in blocks.iter().enumerate() {
        let (x, width) = (LEFT + block.from * across, ((block.to - block.from) * across).max(1.0));
        let (y, tall) = (BOTTOM - block.high * up, ((block.high - block.low) * up).max(1.0));
        put(
            &mut svg,
            format_args!(
                "<rect class=\"f{}\" x=\"{x:.2}\" y=\"{y:.2}\" width=\"{width:.2}\" height=\"{tall:.2}\" fill-opacity=\"0.8\" stroke=\"var(--panel)\"><title>{}</title></rect>",
                number % COLOURS,
                escape(&block.label)
            ),
        );
        let room = ((width - 8.0) / 6.6) as usize;
        if room >= 4 && tall >= 15.0 {
            let name = escape(&cut(&block.name, room));
            put(
                &mut svg,
                format_args!(
                    "<text x=\"{:.1}\" y=\"{:.1}\" style=\"fill:var(--ground)\" pointer-events=\"none\">{name}</text>",
                    x + 4.0,
                    y + tall / 2.0 + 4.0
                ),
            );
        }
    }
    close(svg)
}

/// What colours mean.
pub(crate) fn legend(entries: &[(usize, &str)]) -> String {
    let own: Vec<(String, &str)> =
        entries.iter().map(|(colour, text)| ((colour % COLOURS).to_string(), *text)).collect();
    classes(&own)
}

/// What a mark means that is bad, beside those that are not.
pub(crate) fn legend_of_bad(good: &str, bad: &str) -> String {
    classes(&[("0".to_owned(), good), ("bad".to_owned(), bad)])
}

fn classes(entries: &[(String, &str)]) -> String {
    let entry = |(colour, text): &(String, &str)| {
        format!(
            "<li><svg width=\"12\" height=\"12\" aria-hidden=\"true\"><rect class=\"f{colour}\" width=\"12\" height=\"12\" rx=\"2\"/></svg>{}</li>",
            escape(text)
        )
    };
    format!("<ul class=\"legend\">{}</ul>\n", entries.iter().map(entry).collect::<String>())
}

pub(super) fn open(title: &str, width: f64, height: f64) -> String {
    let title = escape(title);
    format!(
        "<figure>\n<svg viewBox=\"0 0 {width:.0} {height:.0}\" width=\"{width:.0}\" height=\"{height:.0}\" role=\"img\" \
         aria-label=\"{title}\" tabindex=\"0\">\n<title>{title}</title>\n"
    )
}

pub(super) fn close(mut svg: String) -> String {
    svg.push_str("</svg>\n</figure>\n");
    svg
}

pub(super) fn put(svg: &mut String, element: std::fmt::Arguments<'_>) {
    svg.write_fmt(element).expect("text takes text");
    svg.push('\n');
}

pub(super) fn cut(text: &str, most: usize) -> String {
    crate::table::cut(text, most)
}

/// Some round numbers from 0 to the end.
fn ticks(end: f64) -> Vec<f64> {
    let step = 10f64.powf((end / 8.0).max(1e-12).log10().floor());
    let step = [1.0, 2.0, 5.0, 10.0].map(|times| times * step).into_iter().find(|step| end / step <= 9.0);
    let step = step.unwrap_or(end);
    (0..=9).map(|number| f64::from(number) * step).take_while(|tick| *tick <= end * 1.000_001).collect()
}

/// A number with no more digits than a scale needs.
fn short(value: f64) -> String {
    let text = match value.abs() {
        size if size >= 10.0 || size == 0.0 => format!("{value:.0}"),
        size if size >= 1.0 => format!("{value:.1}"),
        _ => format!("{value:.4}"),
    };
    if text.contains('.') { text.trim_end_matches('0').trim_end_matches('.').to_owned() } else { text }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn scales_have_round_numbers() {
        assert_eq!(ticks(10.0), [0.0, 2.0, 4.0, 6.0, 8.0, 10.0]);
        assert!(ticks(0.37).len() > 3 && ticks(1e9).len() > 3);
        assert_eq!(
            (short(0.25), short(1.0), short(1200.0)),
            ("0.25".to_owned(), "1".to_owned(), "1200".to_owned())
        );
    }

    #[test]
    fn charts_have_what_they_are_given() {
        let span = |row, from, to| Span {
            row,
            from,
            to,
            colour: row,
            label: "a < b".to_owned(),
            name: "k".to_owned(),
        };
        let svg = timeline(
            "times",
            &["caller".to_owned(), "1".to_owned()],
            &[span(0, 0.0, 5.0), span(1, 1.0, 2.0)],
            "us",
        );
        assert_eq!(svg.matches("<rect").count(), 2);
        assert!(svg.contains("a &lt; b") && svg.contains("aria-label=\"times\""));
        let point = Point { per_byte: 0.5, rate: 3.0, share: 0.2, label: "k".to_owned(), is_bad: true };
        let svg = roofline("roof", &[point], 100.0, &[("memory".to_owned(), 10.0)]);
        assert!(
            svg.contains("<circle class=\"fbad\"") && svg.contains("memory 10 GB/s") && !svg.contains("NaN"),
            "{svg}"
        );
        assert!(!roofline("roof", &[], 100.0, &[]).contains("NaN"));
    }
}
