//! The measurements of a run as OTLP metrics.

use super::attribute;
use serde_json::{Value, json};

/// One measurement.
#[derive(Debug)]
pub(super) struct Measured {
    /// The name of the metric, a row of the table.
    pub name: &'static str,
    /// The value, in the metric's unit.
    pub value: f64,
    /// The attributes of the measurement.
    pub attributes: Vec<(&'static str, Value)>,
}

/// Bounds of which each is a multiple of the one before.
const fn bounds(first: f64, factor: f64) -> [f64; 14] {
    let mut bounds = [first; 14];
    let mut at = 1;
    while at < bounds.len() {
        bounds[at] = bounds[at - 1] * factor;
        at += 1;
    }
    bounds
}

/// The bounds from the conventions for generative AI, for tokens and for seconds.
const TOKENS: &[f64] = &bounds(1.0, 4.0);
const SECONDS: &[f64] = &bounds(0.01, 2.0);

/// Bounds in seconds for checks and runs, which take minutes and hours.
const LONG: &[f64] = &[
    0.1, 0.5, 1.0, 5.0, 10.0, 30.0, 60.0, 120.0, 300.0, 600.0, 1800.0, 3600.0, 7200.0, 14400.0,
];

/// Name, unit and description of a metric, and the upper bounds of the buckets in which its measurements are counted.
/// Without bounds they are added.
type Metric = (&'static str, &'static str, &'static str, &'static [f64]);

const METRICS: &[Metric] = &[
    (TOKEN_USAGE, "{token}", "Tokens of a turn", TOKENS),
    (TURN_DURATION, "s", "Duration of a turn", SECONDS),
    (RUN_DURATION, "s", "Duration of a run", LONG),
    (CHECK_DURATION, "s", "Duration of a check", LONG),
    (COST, "{USD}", "Cost of turns in US dollars", &[]),
    (TASKS, "{task}", "Tasks that ended", &[]),
    (RETRIES, "{retry}", "Nudges, retries and waits", &[]),
];

pub(super) const TOKEN_USAGE: &str = "gen_ai.client.token.usage";
pub(super) const TURN_DURATION: &str = "gen_ai.client.operation.duration";
pub(super) const RUN_DURATION: &str = "cicd.pipeline.run.duration";
pub(super) const CHECK_DURATION: &str = "sprag.check.duration";
pub(super) const COST: &str = "sprag.cost";
pub(super) const TASKS: &str = "sprag.tasks";
pub(super) const RETRIES: &str = "sprag.retries";

/// Every measured metric, with a data point for each set of attributes.
pub(super) fn metrics(measured: &[Measured], began: u64, last: u64, is_delta: bool) -> Vec<Value> {
    let temporality = if is_delta { 1 } else { 2 };
    let mut all = Vec::new();
    for (name, unit, description, bounds) in METRICS {
        let point = |(attributes, values): Series<'_>| {
            let mut point = if bounds.is_empty() {
                json!({ "asDouble": values.iter().sum::<f64>() })
            } else {
                histogram(&values, bounds)
            };
            let attributes = attributes.iter().map(|(key, value)| attribute(key, value));
            point["attributes"] = attributes.collect();
            point["startTimeUnixNano"] = json!(began.to_string());
            point["timeUnixNano"] = json!(last.to_string());
            point
        };
        let points: Vec<Value> = grouped(measured, name).into_iter().map(point).collect();
        if points.is_empty() {
            continue;
        }
        let mut metric = json!({ "name": name, "unit": unit, "description": description });
        let mut data = json!({ "aggregationTemporality": temporality, "dataPoints": points });
        if bounds.is_empty() {
            data["isMonotonic"] = json!(true);
            metric["sum"] = data;
        } else {
            metric["histogram"] = data;
        }
        all.push(metric);
    }
    all
}

type Series<'m> = (&'m [(&'static str, Value)], Vec<f64>);

/// The values of a metric by their attributes, in the order in which these first appear.
fn grouped<'m>(measured: &'m [Measured], name: &str) -> Vec<Series<'m>> {
    let mut series: Vec<Series<'m>> = Vec::new();
    for one in measured.iter().filter(|one| one.name == name) {
        let mut known = series.iter_mut();
        match known.find(|(attributes, _)| *attributes == one.attributes) {
            Some((_, values)) => values.push(one.value),
            None => series.push((&one.attributes, vec![one.value])),
        }
    }
    series
}

fn histogram(values: &[f64], bounds: &[f64]) -> Value {
    let mut buckets = vec![0_u64; bounds.len() + 1];
    for value in values {
        // A bound is included in its bucket.
        buckets[bounds.partition_point(|bound| bound < value)] += 1;
    }
    let buckets: Vec<String> = buckets.iter().map(u64::to_string).collect();
    let (least, most) = (
        values.iter().copied().reduce(f64::min),
        values.iter().copied().reduce(f64::max),
    );
    json!({ "count": values.len().to_string(), "sum": values.iter().sum::<f64>(), "min": least, "max": most,
        "bucketCounts": buckets, "explicitBounds": bounds })
}
