//! One figure: what was measured, beside its floor and its target.

use serde_json::{Map, Value, json};

use crate::rows::RowName;
use crate::statistics::median;

/// What a number counts.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Unit {
    /// Things per second; more is better.
    PerSecond,
    /// A latency or duration, in seconds; less is better.
    Seconds,
    /// Memory; less is better.
    Bytes,
    /// A share of one processor core, in percent; less is better.
    Percent,
}

impl Unit {
    fn name(self) -> &'static str {
        match self {
            Self::PerSecond => "per_second",
            Self::Seconds => "seconds",
            Self::Bytes => "bytes",
            Self::Percent => "percent_of_a_core",
        }
    }

    /// `value` as people read it.
    pub(crate) fn show(self, value: f64) -> String {
        match self {
            Self::PerSecond if value >= 1e6 => format!("{:.2} M/s", value / 1e6),
            Self::PerSecond if value >= 1e3 => format!("{:.1} k/s", value / 1e3),
            Self::PerSecond => format!("{value:.0} /s"),
            Self::Seconds if value >= 1.0 => format!("{value:.2} s"),
            Self::Seconds if value >= 1e-3 => format!("{:.2} ms", value * 1e3),
            Self::Seconds => format!("{:.0} µs", value * 1e6),
            Self::Bytes if value.abs() >= 1_048_576.0 => format!("{:.1} MiB", value / 1_048_576.0),
            Self::Bytes => format!("{:.2} KiB", value / 1024.0),
            Self::Percent => format!("{value:.2} %"),
        }
    }
}

/// What a figure is to reach.
#[derive(Debug, Clone, Copy, PartialEq)]
pub(crate) enum Target {
    /// Nothing: it is there to be seen.
    None,
    /// This share of the floor.
    OfFloor(f64),
    /// This much, for a reason.
    AtLeast(f64, &'static str),
    /// Not more than this, for a reason.
    AtMost(f64, &'static str),
}

/// A measured figure.
#[derive(Debug)]
pub(crate) struct Line {
    /// The row that it belongs to.
    pub(crate) row: RowName,
    /// Which of the row's figures.
    pub(crate) figure: String,
    /// The factor of `--scale`.
    pub(crate) factor: Option<usize>,
    /// What it counts.
    pub(crate) unit: Unit,
    rounds: Vec<f64>,
    floor: Option<(&'static str, Vec<f64>)>,
    target: Target,
}

impl Line {
    /// A figure from what each round measured.
    pub(crate) fn new(row: RowName, figure: impl Into<String>, unit: Unit, rounds: Vec<f64>) -> Self {
        Self { row, figure: figure.into(), factor: None, unit, rounds, floor: None, target: Target::None }
    }

    /// With the floor as the same rounds measured it.
    pub(crate) fn over(self, name: &'static str, rounds: Vec<f64>) -> Self {
        Self { floor: Some((name, rounds)), ..self }
    }

    /// With a target.
    pub(crate) fn target(self, target: Target) -> Self {
        Self { target, ..self }
    }

    /// Measured at a factor of `--scale`.
    pub(crate) fn at(self, factor: usize) -> Self {
        Self { factor: Some(factor), ..self }
    }

    /// The median of the rounds.
    pub(crate) fn value(&self) -> f64 {
        median(&self.rounds)
    }

    /// The floor's name and median.
    pub(crate) fn floor(&self) -> Option<(&'static str, f64)> {
        self.floor.as_ref().map(|(name, rounds)| (*name, median(rounds)))
    }

    /// The median of each round's ratio to the floor of the same round.
    pub(crate) fn ratio(&self) -> Option<f64> {
        let (_, floor) = self.floor.as_ref()?;
        let ratios: Vec<f64> = self.rounds.iter().zip(floor).map(|(value, floor)| value / floor).collect();
        Some(median(&ratios))
    }

    /// Whether the target was reached; `None` without one.
    pub(crate) fn reached(&self) -> Option<bool> {
        match self.target {
            Target::None => None,
            Target::OfFloor(share) => self.ratio().map(|ratio| ratio >= share),
            Target::AtLeast(bound, _) => Some(self.value() >= bound),
            Target::AtMost(bound, _) => Some(self.value() <= bound),
        }
    }

    /// Whether there is a target that was not reached.
    pub(crate) fn missed(&self) -> bool {
        self.reached() == Some(false)
    }

    /// The target in words.
    pub(crate) fn target_text(&self) -> String {
        let because = |why: &str| if why.is_empty() { String::new() } else { format!(" ({why})") };
        match self.target {
            Target::None => String::new(),
            Target::OfFloor(share) => format!("≥ {share} × floor"),
            Target::AtLeast(bound, why) => format!("≥ {}{}", self.unit.show(bound), because(why)),
            Target::AtMost(bound, why) => format!("≤ {}{}", self.unit.show(bound), because(why)),
        }
    }

    /// How much worse it is than `smaller`, the same figure with less data: 1 when size costs nothing.
    pub(crate) fn growth(&self, smaller: &Self) -> f64 {
        if self.unit == Unit::PerSecond { smaller.value() / self.value() } else { self.value() / smaller.value() }
    }

    /// For programs.
    pub(crate) fn json(&self) -> Value {
        let mut line = Map::new();
        let mut put = |name: &str, value: Value| line.insert(name.to_owned(), value);
        put("row", self.row.to_string().into());
        put("figure", self.figure.as_str().into());
        put("unit", self.unit.name().into());
        put("value", self.value().into());
        put("rounds", self.rounds.as_slice().into());
        if let Some(factor) = self.factor {
            put("factor", factor.into());
        }
        if let Some((name, value)) = self.floor() {
            put("floor", json!({"name": name, "value": value}));
            put("ratio", self.ratio().into());
        }
        if let Some(reached) = self.reached() {
            put("target", self.target_text().into());
            put("reached", reached.into());
        }
        line.into()
    }
}

#[cfg(test)]
mod tests {
    use super::{Line, Target, Unit};
    use crate::rows::RowName;

    fn line(unit: Unit, rounds: &[f64]) -> Line {
        Line::new(RowName::Publish, "rate", unit, rounds.to_vec())
    }

    #[test]
    fn a_ratio_compares_each_round_with_the_floor_of_its_own_round() {
        let slowed_down_twice = line(Unit::PerSecond, &[50.0, 25.0, 10.0]).over("floor", vec![100.0, 50.0, 20.0]);
        assert_eq!(slowed_down_twice.ratio(), Some(0.5));
        assert_eq!(slowed_down_twice.target(Target::OfFloor(0.5)).reached(), Some(true));
    }

    #[test]
    fn a_target_is_reached_on_its_own_side() {
        let fast = || line(Unit::PerSecond, &[60e3]);
        assert_eq!(fast().target(Target::AtLeast(60e3, "")).reached(), Some(true));
        assert_eq!(fast().target(Target::AtLeast(61e3, "")).reached(), Some(false));
        assert_eq!(line(Unit::Seconds, &[0.002]).target(Target::AtMost(0.001, "")).reached(), Some(false));
        assert_eq!(fast().reached(), None);
        assert!(!fast().missed());
    }

    #[test]
    fn growth_says_how_many_times_worse() {
        assert!((line(Unit::PerSecond, &[50.0]).growth(&line(Unit::PerSecond, &[100.0])) - 2.0).abs() < 1e-9);
        assert!((line(Unit::Seconds, &[3.0]).growth(&line(Unit::Seconds, &[2.0])) - 1.5).abs() < 1e-9);
    }

    #[test]
    fn figures_are_shown_in_the_unit_that_suits_them() {
        let shown = [
            (Unit::PerSecond, 1_234_567.0, "1.23 M/s"),
            (Unit::PerSecond, 52_310.0, "52.3 k/s"),
            (Unit::PerSecond, 499.6, "500 /s"),
            (Unit::Seconds, 0.000_43, "430 µs"),
            (Unit::Seconds, 0.0021, "2.10 ms"),
            (Unit::Bytes, 6_554.0, "6.40 KiB"),
            (Unit::Bytes, 31_457_280.0, "30.0 MiB"),
            (Unit::Percent, 1.5, "1.50 %"),
        ];
        for (unit, value, text) in shown {
            assert_eq!(unit.show(value), text);
        }
    }
}
