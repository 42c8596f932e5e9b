//! Columns of texts, aligned.

use super::{Line, Unit};

/// By how much a figure may get worse from the smallest to the largest size.
const GROWTH: f64 = 1.5;

/// The figures.
pub(crate) fn figures(lines: &[Line]) -> String {
    let header = ["row", "figure", "value", "floor", "", "ratio", "target", "verdict"];
    let rows = lines.iter().map(|line| {
        let (name, floor) = line.floor().map_or(("", String::new()), |(name, value)| (name, line.unit.show(value)));
        let factor = line.factor.map_or(String::new(), |factor| format!(" × {factor}"));
        [
            format!("{}{factor}", line.row),
            line.figure.clone(),
            line.unit.show(line.value()),
            floor,
            name.to_owned(),
            line.ratio().map_or(String::new(), |ratio| format!("{ratio:.2}")),
            line.target_text(),
            verdict(line.reached()).to_owned(),
        ]
    });
    aligned(std::iter::once(header.map(str::to_owned)).chain(rows).collect())
}

/// How each figure grows with size; empty when there is one size only.
pub(crate) fn growth(lines: &[Line]) -> String {
    let header = ["row", "figure", "smallest", "largest", "cost", "target", "verdict"].map(str::to_owned);
    let mut rows = vec![header];
    for line in lines.iter().filter(|line| line.factor == Some(1)) {
        let alike = |other: &&Line| other.row == line.row && other.figure == line.figure && other.factor > line.factor;
        let Some(largest) = lines.iter().filter(alike).max_by_key(|other| other.factor) else { continue };
        let cost = largest.growth(line);
        rows.push([
            line.row.to_string(),
            line.figure.clone(),
            line.unit.show(line.value()),
            largest.unit.show(largest.value()),
            format!("{cost:.2} ×"),
            format!("≤ {GROWTH} ×"),
            verdict(Some(cost <= GROWTH)).to_owned(),
        ]);
    }
    if rows.len() > 1 { aligned(rows) } else { String::new() }
}

/// What the units mean, where a table needs it said.
pub(crate) fn legend(lines: &[Line]) -> String {
    let percent = lines.iter().any(|line| line.unit == Unit::Percent);
    if percent { "% are of one processor core.\n".to_owned() } else { String::new() }
}

fn verdict(reached: Option<bool>) -> &'static str {
    match reached {
        Some(true) => "reached",
        Some(false) => "missed",
        None => "",
    }
}

fn aligned<const N: usize>(rows: Vec<[String; N]>) -> String {
    let width = |column: usize| rows.iter().filter_map(|row| row.get(column)).map(|cell| cell.chars().count()).max().unwrap_or(0);
    let widths: Vec<usize> = (0..N).map(width).collect();
    let line = |row: &[String; N]| {
        let cells = row.iter().zip(&widths).map(|(cell, width)| format!("{cell:<width$}"));
        format!("{}\n", cells.collect::<Vec<_>>().join("  ").trim_end())
    };
    rows.iter().map(line).collect()
}

#[cfg(test)]
mod tests {
    use super::{figures, growth};
    use crate::report::{Line, Target, Unit};
    use crate::rows::RowName;

    #[test]
    fn columns_are_aligned_and_verdicts_stand_beside_their_targets() {
        let lines = [
            Line::new(RowName::Publish, "rate", Unit::PerSecond, vec![30e3]).over("group commit", vec![100e3]).target(Target::OfFloor(0.4)),
            Line::new(RowName::Publish, "p99", Unit::Seconds, vec![0.004]).target(Target::AtMost(0.005, "")),
        ];
        let expected = "\
row      figure  value     floor      ratio  target         verdict
publish  rate    30.0 k/s  100.0 k/s  0.30   ≥ 0.4 × floor  missed
publish  p99     4.00 ms                     ≤ 5.00 ms      reached
";
        // The floor's name is a column of its own without a title.
        let shown = figures(&lines).replace("group commit  ", "").replace("              ratio", "ratio");
        assert_eq!(squeeze(&shown), squeeze(expected));
        let starts: Vec<_> = figures(&lines).lines().map(|line| line.find("≥").or_else(|| line.find("≤"))).collect();
        assert_eq!(starts[1], starts[2], "{}", figures(&lines));
    }

    fn squeeze(text: &str) -> String {
        text.split_whitespace().collect::<Vec<_>>().join(" ")
    }

    #[test]
    fn growth_compares_the_largest_size_with_the_smallest() {
        let line = |factor, value| Line::new(RowName::Rest, "rate", Unit::PerSecond, vec![value]).at(factor);
        let shown = growth(&[line(1, 90e3), line(10, 70e3), line(100, 45e3)]);
        assert_eq!(squeeze(shown.lines().last().unwrap()), "rest rate 90.0 k/s 45.0 k/s 2.00 × ≤ 1.5 × missed");
        assert_eq!(growth(&[Line::new(RowName::Rest, "rate", Unit::PerSecond, vec![1.0])]), "");
    }
}
