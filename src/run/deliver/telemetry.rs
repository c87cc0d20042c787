//! Sends the traces and metrics of a run to an OpenTelemetry collector, if the standard variables name
//! one.
//!
//! It is sent once, at the end, without retries: an observer must not delay a run.

use crate::agents::model_vendor;
use crate::context::Context;
use crate::domain::agent::AgentEvent;
use crate::domain::event::{Event, EventKind};
use crate::domain::summary::RunSummary;
use crate::http::{Client, Network, TransportError};
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
        let truth = |name| {
            context
                .var(name)
                .is_some_and(|value| value.eq_ignore_ascii_case("true"))
        };
        if truth("OTEL_SDK_DISABLED") {
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
        let is_delta = |word: &str| {
            let words = ["delta", "lowmemory"];
            words.iter().any(|known| word.eq_ignore_ascii_case(known))
        };
        Some(Self {
            telemetry: Telemetry::new(model_vendor),
            origin: Origin {
                resource: resource(context),
                parent: context.var("TRACEPARENT").and_then(Parent::read),
                is_delta: temporality.is_some_and(is_delta),
            },
            targets,
            network: Network::of(|name| context.var_os(name).map(ToOwned::to_owned)),
            limit,
        })
    }

    /// Adds a redacted event.
    pub(crate) fn take(&mut self, event: &Event, summary: &RunSummary) {
        let is_told = match &event.kind {
            EventKind::Agent(said) => matches!(
                said,
                AgentEvent::SessionStarted { .. }
                    | AgentEvent::ToolCall { .. }
                    | AgentEvent::ToolResult { .. }
            ),
            EventKind::TurnProgress(_) => false,
            _ => true,
        };
        if is_told {
            self.telemetry.apply(&WireEvent::new(event, summary));
        }
    }

    /// Sends everything. Returns one message per failure.
    pub(crate) fn send(self, time: Time, redactor: &Redactor) -> Vec<String> {
        let targets = match self.targets {
            Ok(targets) => targets,
            Err(fault) => return vec![fault],
        };
        let documents = [
            self.telemetry.traces(&self.origin),
            self.telemetry.metrics(&self.origin),
        ];
        // Events are already redacted, but attributes from the variables are not.
        let documents = documents.map(|document| {
            let text = document?.to_string();
            Some(redactor.redact(&text).into_owned())
        });
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
        let (traces, metrics) = runtime.block_on(async {
            tokio::join!(
                post(&client, traces, spans, limit),
                post(&client, metrics, measured, limit)
            )
        });
        // A name lookup in progress must not delay the exit.
        runtime.shutdown_background();
        let mut faults: Vec<String> = [traces, metrics]
            .into_iter()
            .filter_map(Result::err)
            .collect();
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
    let host = target.address.authority().map_or("", |authority| {
        // Without user name and password.
        let text = authority.as_str();
        text.rsplit_once('@').map_or(text, |(_, host)| host)
    });
    let told = |why: String| {
        format!("OpenTelemetry: the collector at {host} did not accept the data of the run: {why}")
    };
    let mut request =
        Request::post(target.address.clone()).header(CONTENT_TYPE, "application/json");
    for (name, value) in &target.headers {
        request = request.header(name, value);
    }
    let body = Full::new(Bytes::from(document));
    let request = request
        .body(body)
        .map_err(|error| told(error.to_string()))?;
    let answer = tokio::time::timeout(limit, client.send(request, limit)).await;
    match answer {
        Ok(Ok(answer)) if answer.status().is_success() => Ok(()),
        Ok(Ok(answer)) => Err(told(format!("it answered {}", answer.status()))),
        Err(_) | Ok(Err(TransportError::Late)) => Err(told("it did not answer in time".into())),
        Ok(Err(
            TransportError::Unsent(why) | TransportError::Lost(why) | TransportError::Broken(why),
        )) => Err(told(why)),
    }
}

/// The destinations of traces and metrics.
fn targets(context: &Context) -> Result<[Option<Target>; 2], String> {
    let mut targets = [None, None];
    for (target, (signal, path)) in targets.iter_mut().zip(SIGNALS) {
        if context
            .var(&format!("OTEL_{signal}_EXPORTER"))
            .is_some_and(|word| word == "none")
        {
            continue;
        }
        let of_signal = |name: &str| {
            let own = format!("OTEL_EXPORTER_OTLP_{signal}_{name}");
            let shared = format!("OTEL_EXPORTER_OTLP_{name}");
            let found = [own, shared].into_iter();
            found
                .filter_map(|name| Some((context.var(&name)?.trim(), name.clone())))
                .next()
        };
        let Some((base, variable)) = of_signal("ENDPOINT") else {
            continue;
        };
        if let Some((protocol, variable)) =
            of_signal("PROTOCOL").filter(|(word, _)| *word == "grpc")
        {
            return Err(format!(
                "OpenTelemetry: {variable} is {protocol}, but only OTLP over HTTP is supported: set it to http/json"
            ));
        }
        let is_own = variable.contains(signal);
        let address = if is_own {
            base.to_owned()
        } else {
            format!("{}/{path}", base.trim_end_matches('/'))
        };
        let parsed = address.parse::<Uri>().ok();
        let is_http = |uri: &Uri| {
            ["http", "https"].contains(&uri.scheme_str().unwrap_or_default())
                && uri.authority().is_some()
        };
        let Some(address) = parsed.filter(is_http) else {
            return Err(format!(
                "OpenTelemetry: {variable} is not an http or https URL"
            ));
        };
        let headers = match of_signal("HEADERS") {
            Some((text, variable)) => headers(text, &variable)?,
            None => Vec::new(),
        };
        *target = Some(Target { address, headers });
    }
    Ok(targets)
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
