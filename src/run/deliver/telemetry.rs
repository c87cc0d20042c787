//! Sends the traces and metrics of a run to an OpenTelemetry collector, if the standard variables name
//! one.
//!
//! It is sent once, at the end, without retries: an observer must not delay a run.

use crate::agents::model_vendor;
use crate::context::Context;
use crate::domain::event::Event;
use crate::domain::summary::RunSummary;
use crate::http::{Client, Network};
use crate::report::buffered_output::Time;
use crate::report::otlp::{Origin, Parent, Telemetry};
use crate::report::wire::WireEvent;
use crate::secrets::redact::Redactor;
use http_body_util::Full;
use hyper::body::Bytes;
use hyper::header::{CONTENT_TYPE, HeaderName, HeaderValue};
use hyper::{Request, Uri};
use percent_encoding::percent_decode_str;
use std::time::Duration;

/// How long the end of a run waits for a collector, normally and when the run is cancelled.
const EXPORT_TIMEOUT: Duration = Duration::from_secs(10);
const CANCELLED_EXPORT_TIMEOUT: Duration = Duration::from_secs(1);

/// The two signals: the word in variable names and the path of the endpoint.
const SIGNALS: [(&str, &str); 2] = [("TRACES", "v1/traces"), ("METRICS", "v1/metrics")];

/// The telemetry collected from a run's events, and its destination.
#[derive(Debug)]
pub(crate) struct Exporter {
    telemetry: Telemetry,
    origin: Origin,
    /// The destination of each of [`SIGNALS`], or why the variables are invalid.
    targets: Result<[Option<Target>; 2], String>,
    network: Network,
    limit: Duration,
}

#[derive(Debug, Clone)]
struct Target {
    address: Uri,
    headers: Vec<(HeaderName, HeaderValue)>,
}

impl Exporter {
    /// The exporter that the variables configure; `None` if they name no collector.
    pub(crate) fn of(context: &Context) -> Option<Self> {
        let disabled = context.var("OTEL_SDK_DISABLED");
        if disabled.is_some_and(|value| value.eq_ignore_ascii_case("true")) {
            return None;
        }
        let targets = targets(context);
        if matches!(&targets, Ok(targets) if targets.iter().all(Option::is_none)) {
            return None;
        }
        let limit = context
            .var("OTEL_EXPORTER_OTLP_TIMEOUT")
            .and_then(|text| text.trim().parse().ok())
            .map_or(EXPORT_TIMEOUT, Duration::from_millis)
            .min(EXPORT_TIMEOUT);
        let temporality = context.var("OTEL_EXPORTER_OTLP_METRICS_TEMPORALITY_PREFERENCE");
        let temporality = temporality.map(str::to_ascii_lowercase);
        Some(Self {
            telemetry: Telemetry::new(model_vendor),
            origin: Origin {
                resource: resource(context),
                parent: context.var("TRACEPARENT").and_then(Parent::read),
                is_delta: matches!(temporality.as_deref(), Some("delta" | "lowmemory")),
            },
            targets,
            network: Network::of(|name| context.var_os(name).map(ToOwned::to_owned)),
            limit,
        })
    }

    /// Adds a redacted event.
    pub(crate) fn take(&mut self, event: &Event, summary: &RunSummary) {
        self.telemetry.apply(&WireEvent::new(event, summary));
    }

    /// Sends everything. Returns one message per failure.
    pub(crate) fn send(self, time: Time, redactor: &Redactor) -> Vec<String> {
        let targets = match self.targets {
            Ok(targets) => targets,
            Err(fault) => return vec![fault],
        };
        // Events are already redacted, but attributes from the variables are not.
        let documents = [
            self.telemetry.traces(&self.origin),
            self.telemetry.metrics(&self.origin),
        ]
        .map(|document| Some(redactor.redact(&document?.to_string()).into_owned()));
        let limit = match time {
            Time::Short => self.limit.min(CANCELLED_EXPORT_TIMEOUT),
            Time::Enough => self.limit,
        };
        let runtime = tokio::runtime::Builder::new_current_thread()
            .enable_all()
            .build();
        let runtime = match runtime {
            Ok(runtime) => runtime,
            Err(error) => return vec![format!("OpenTelemetry: {error}")],
        };
        let client = Client::new(&self.network, Some(limit));
        let [traces, metrics] = targets;
        let [spans, measured] = documents;
        let posted = runtime.block_on(async {
            tokio::join!(
                post(&client, traces, spans, limit),
                post(&client, metrics, measured, limit)
            )
        });
        // A name lookup in progress must not delay the exit.
        runtime.shutdown_background();
        let mut faults: Vec<String> = posted.0.err().into_iter().chain(posted.1.err()).collect();
        faults.dedup();
        faults
    }
}

/// Posts a document, if there is one and it has a destination.
async fn post(
    client: &Client,
    target: Option<Target>,
    document: Option<String>,
    limit: Duration,
) -> Result<(), String> {
    let (Some(target), Some(document)) = (target, document) else {
        return Ok(());
    };
    // Without user name and password.
    let host = target.address.host().unwrap_or_default().to_owned();
    let port = target
        .address
        .port()
        .map_or(String::new(), |port| format!(":{port}"));
    let told = |why: String| {
        format!(
            "OpenTelemetry: the collector at {host}{port} did not accept the data of the run: {why}"
        )
    };
    let mut request = Request::post(target.address).header(CONTENT_TYPE, "application/json");
    for (name, value) in &target.headers {
        request = request.header(name, value);
    }
    let request = request.body(Full::new(Bytes::from(document)));
    let request = request.map_err(|error| told(error.to_string()))?;
    const LATE: &str = "it did not answer in time";
    match tokio::time::timeout(limit, client.send(request, limit)).await {
        Ok(Ok(answer)) if answer.status().is_success() => Ok(()),
        Ok(Ok(answer)) => Err(told(format!("it answered {}", answer.status()))),
        Ok(Err(error)) => Err(told(error.text_or(LATE))),
        Err(_) => Err(told(LATE.to_owned())),
    }
}

/// The destinations of traces and metrics.
fn targets(context: &Context) -> Result<[Option<Target>; 2], String> {
    let target_of = |(signal, path): (&str, &str)| {
        if context.var(&format!("OTEL_{signal}_EXPORTER")) == Some("none") {
            return Ok(None);
        }
        let of_signal = |name: &str| {
            let own = format!("OTEL_EXPORTER_OTLP_{signal}_{name}");
            let shared = format!("OTEL_EXPORTER_OTLP_{name}");
            let mut found = [own, shared].into_iter();
            found.find_map(|name| Some((context.var(&name)?.trim(), name)))
        };
        let Some((base, variable)) = of_signal("ENDPOINT") else {
            return Ok(None);
        };
        if let Some(("grpc", variable)) = of_signal("PROTOCOL") {
            return Err(format!(
                "OpenTelemetry: {variable} is grpc, but only OTLP over HTTP is supported: set it to http/json"
            ));
        }
        let address = if variable.contains(signal) {
            base.to_owned()
        } else {
            format!("{}/{path}", base.trim_end_matches('/'))
        };
        let is_http = |uri: &Uri| {
            matches!(uri.scheme_str(), Some("http" | "https")) && uri.authority().is_some()
        };
        let Some(address) = address.parse::<Uri>().ok().filter(is_http) else {
            return Err(format!(
                "OpenTelemetry: {variable} is not an http or https URL"
            ));
        };
        let headers = match of_signal("HEADERS") {
            Some((text, variable)) => headers(text, &variable)?,
            None => Vec::new(),
        };
        Ok(Some(Target { address, headers }))
    };
    let [traces, metrics] = SIGNALS;
    Ok([target_of(traces)?, target_of(metrics)?])
}

fn headers(text: &str, variable: &str) -> Result<Vec<(HeaderName, HeaderValue)>, String> {
    let read = |(name, value): (String, String)| {
        let mut value = HeaderValue::from_str(&value).ok()?;
        value.set_sensitive(true);
        Some((HeaderName::from_bytes(name.as_bytes()).ok()?, value))
    };
    let all: Option<Vec<_>> = pairs(text).map(read).collect();
    all.ok_or_else(|| {
        format!(
            "OpenTelemetry: {variable} has an invalid header: write name=value, separated by commas"
        )
    })
}

/// The resource attributes from the variables.
fn resource(context: &Context) -> Vec<(String, String)> {
    let given = context.var("OTEL_RESOURCE_ATTRIBUTES").unwrap_or_default();
    let named = context.var("OTEL_SERVICE_NAME");
    let own = named.map(|name| ("service.name".to_owned(), name.to_owned()));
    let others = pairs(given).filter(|(key, _)| own.is_none() || key != "service.name");
    others.chain(own.clone()).collect()
}

/// Comma-separated `name=value` pairs with percent-encoded values.
fn pairs(text: &str) -> impl Iterator<Item = (String, String)> {
    let all = text.split(',').filter_map(|pair| pair.split_once('='));
    all.map(|(name, value)| {
        let value = percent_decode_str(value.trim()).decode_utf8_lossy();
        (name.trim().to_owned(), value.into_owned())
    })
}
