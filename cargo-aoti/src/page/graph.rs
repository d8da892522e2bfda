//! Graphs as SVG: nodes in layers from top to bottom, by the longest way to each, and edges between them.

use super::chart::{close, cut, open, put};
use super::escape;

/// A node.
pub(crate) struct Node {
    pub(crate) name: String,
    /// A second, smaller line.
    pub(crate) note: String,
    pub(crate) label: String,
    pub(crate) colour: usize,
    /// Positions of the nodes that it follows, all before it.
    pub(crate) after: Vec<usize>,
}

const NODE: (f64, f64) = (230.0, 40.0);
const GAP: (f64, f64) = (24.0, 34.0);
/// Nodes beside each other; more of a layer go below.
const MOST_BESIDE: usize = 6;

/// The layer and the column of each node.
fn layout(nodes: &[Node]) -> Vec<(usize, usize)> {
    let mut layers = Vec::with_capacity(nodes.len());
    for node in nodes {
        let layer = node.after.iter().filter_map(|before| layers.get(*before)).map(|layer| layer + 1).max();
        layers.push(layer.unwrap_or(0));
    }
    // A layer that is too wide becomes several rows.
    let deepest = layers.iter().copied().max().unwrap_or(0);
    let (mut places, mut row) = (vec![(0, 0); nodes.len()], 0);
    for layer in 0..=deepest {
        let mut members: Vec<usize> = (0..nodes.len()).filter(|node| layers[*node] == layer).collect();
        // Near those that they follow, so that fewer edges cross.
        members
            .sort_by_key(|node| nodes[*node].after.iter().map(|before| places[*before].1).min().unwrap_or(0));
        for (position, node) in members.iter().enumerate() {
            places[*node] = (row + position / MOST_BESIDE, position % MOST_BESIDE);
        }
        row += members.len().div_ceil(MOST_BESIDE).max(1);
    }
    places
}

/// Draws a graph.
pub(crate) fn draw(title: &str, nodes: &[Node]) -> String {
    let places = layout(nodes);
    let columns = places.iter().map(|(_, column)| column + 1).max().unwrap_or(1);
    let rows = places.iter().map(|(row, _)| row + 1).max().unwrap_or(1);
    let width = (columns as f64 * (NODE.0 + GAP.0) + GAP.0).max(700.0);
    let height = rows as f64 * (NODE.1 + GAP.1) + GAP.1;
    let in_row = |row: usize| places.iter().filter(|(own, _)| *own == row).count() as f64;
    let corner = |node: usize| {
        let (row, column) = places[node];
        let own = in_row(row) * (NODE.0 + GAP.0) - GAP.0;
        ((width - own) / 2.0 + column as f64 * (NODE.0 + GAP.0), GAP.1 / 2.0 + row as f64 * (NODE.1 + GAP.1))
    };
    let mut svg = open(title, width, height).replace("<svg ", "<svg class=\"wide\" ");
    for (number, node) in nodes.iter().enumerate() {
        let (x1, y1) = corner(number);
        for before in node.after.iter().filter(|before| **before < number) {
            let (x0, y0) = corner(*before);
            let (x0, y0, x1) = (x0 + NODE.0 / 2.0, y0 + NODE.1, x1 + NODE.0 / 2.0);
            // Long edges keep to the side of the nodes between.
            let aside = if y1 - y0 > GAP.1 + 1.0 { NODE.0 * 0.75 + 16.0 } else { 0.0 };
            put(
                &mut svg,
                format_args!(
                    "<path class=\"edge\" d=\"M{x0:.1} {y0:.1}C{:.1} {:.1} {:.1} {:.1} {x1:.1} {y1:.1}\"/>",
                    x0 + aside,
                    y0 + GAP.1,
                    x1 + aside,
                    y1 - GAP.1
                ),
            );
        }
    }
    for (number, node) in nodes.iter().enumerate() {
        let (x, y) = corner(number);
        let (name, note, label) =
            (escape(&cut(&node.name, 30)), escape(&cut(&node.note, 34)), escape(&node.label));
        put(
            &mut svg,
            format_args!(
                "<g><title>{label}</title><rect class=\"node\" x=\"{x:.1}\" y=\"{y:.1}\" width=\"{}\" height=\"{}\" rx=\"6\"/>\
                 <rect class=\"f{}\" x=\"{x:.1}\" y=\"{y:.1}\" width=\"5\" height=\"{}\" rx=\"2\"/>\
                 <text x=\"{:.1}\" y=\"{:.1}\">{name}</text>\
                 <text class=\"dim\" x=\"{:.1}\" y=\"{:.1}\" style=\"font-size:11px\">{note}</text></g>",
                NODE.0,
                NODE.1,
                node.colour % super::chart::COLOURS,
                NODE.1,
                x + 13.0,
                y + 17.0,
                x + 13.0,
                y + 32.0
            ),
        );
    }
    close(svg)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn nodes_are_below_those_that_they_follow() {
        let node = |after: &[usize]| Node {
            name: "k".to_owned(),
            note: String::new(),
            label: "k & l".to_owned(),
            colour: 0,
            after: after.to_vec(),
        };
        let nodes = [node(&[]), node(&[0]), node(&[0]), node(&[1, 2])];
        assert_eq!(layout(&nodes), [(0, 0), (1, 0), (1, 1), (2, 0)]);
        let svg = draw("kernels", &nodes);
        assert_eq!((svg.matches("<path").count(), svg.matches("<g>").count()), (4, 4));
        assert!(svg.contains("k &amp; l"));
        // No node is beside more than fit.
        let wide: Vec<Node> = (0..20).map(|_| node(&[])).collect();
        assert!(layout(&wide).iter().all(|(_, column)| *column < MOST_BESIDE));
    }
}
