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

/// How measurements are aggregated.
enum Kind {
    /// They are added.
    Sum,
    /// They are counted in buckets with these upper bounds.
    Histogram(&'static [f64]),
}

/// The bounds from the conventions for generative AI, for tokens and for seconds.
const TOKENS: &[f64] = &[
    1.0,
    4.0,
    16.0,
    64.0,
    256.0,
    1024.0,
    4096.0,
    16384.0,
    65536.0,
    262_144.0,
    1_048_576.0,
    4_194_304.0,
    16_777_216.0,
    67_108_864.0,
];
const SECONDS: &[f64] = &[
    0.01, 0.02, 0.04, 0.08, 0.16, 0.32, 0.64, 1.28, 2.56, 5.12, 10.24, 20.48, 40.96, 81.92,
];
/// Bounds in seconds for checks and runs, which take minutes and hours.
const LONG: &[f64] = &[
    0.1, 0.5, 1.0, 5.0, 10.0, 30.0, 60.0, 120.0, 300.0, 600.0, 1800.0, 3600.0, 7200.0, 14400.0,
];

/// Name, unit, description and kind of every metric.
const METRICS: &[(&str, &str, &str, Kind)] = &[
    (
        "gen_ai.client.token.usage",
        "{token}",
        "Tokens of a turn",
        Kind::Histogram(TOKENS),
    ),
    (
        "gen_ai.client.operation.duration",
        "s",
        "Duration of a turn",
        Kind::Histogram(SECONDS),
    ),
    (
        "cicd.pipeline.run.duration",
        "s",
        "Duration of a run",
        Kind::Histogram(LONG),
    ),
    (
        "sprag.check.duration",
        "s",
        "Duration of a check",
        Kind::Histogram(LONG),
    ),
    (
        "sprag.cost",
        "{USD}",
        "Cost of turns in US dollars",
        Kind::Sum,
    ),
    ("sprag.tasks", "{task}", "Tasks that ended", Kind::Sum),
    (
        "sprag.retries",
        "{retry}",
        "Nudges, retries and waits",
        Kind::Sum,
    ),
];

/// Every measured metric, with a data point for each set of attributes.
pub(super) fn metrics(measured: &[Measured], began: u64, last: u64, is_delta: bool) -> Vec<Value> {
    let temporality = if is_delta { 1 } else { 2 };
    let mut all = Vec::new();
    for (name, unit, description, kind) in METRICS {
        let points: Vec<Value> = grouped(measured, name)
            .into_iter()
            .map(|(attributes, values)| {
                let mut point = match kind {
                    Kind::Sum => json!({ "asDouble": values.iter().sum::<f64>() }),
                    Kind::Histogram(bounds) => histogram(&values, bounds),
                };
                let attributes = attributes.iter().map(|(key, value)| attribute(key, value));
                point["attributes"] = attributes.collect();
                point["startTimeUnixNano"] = json!(began.to_string());
                point["timeUnixNano"] = json!(last.to_string());
                point
            })
            .collect();
        if points.is_empty() {
            continue;
        }
        let mut metric = json!({ "name": name, "unit": unit, "description": description });
        let mut data = json!({ "aggregationTemporality": temporality, "dataPoints": points });
        match kind {
            Kind::Sum => {
                data["isMonotonic"] = json!(true);
                metric["sum"] = data;
            }
            Kind::Histogram(_) => metric["histogram"] = data,
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
        match series
            .iter_mut()
            .find(|(known, _)| *known == one.attributes)
        {
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
    let least = values.iter().copied().fold(f64::INFINITY, f64::min);
    let most = values.iter().copied().fold(f64::NEG_INFINITY, f64::max);
    json!({ "count": values.len().to_string(), "sum": values.iter().sum::<f64>(), "min": least, "max": most,
        "bucketCounts": buckets, "explicitBounds": bounds })
}
