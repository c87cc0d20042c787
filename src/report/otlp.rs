//! A run as OpenTelemetry traces and metrics in the JSON encoding of OTLP/HTTP: public events in, two
//! documents out.
//!
//! The encoding is stable and published. The crates `opentelemetry`, `opentelemetry_sdk` and `opentelemetry-otlp`
//! (0.32, only `http-json`) would add 15 packages and replace a third of this module: what an event becomes stays.
//! They take the time of a measurement when it is recorded, so metrics of a run that has ended would get wrong times.
//!
//! Names follow the semantic conventions for generative AI (`gen_ai.*`) and for CI (`cicd.*`, `vcs.*`) if
//! these have one, and start with `sprag.` otherwise. Of what an agent, a check or a person wrote, only the
//! names of plan, tasks, checks and branch are sent.

mod metrics;
mod parent;

use super::wire::WireEvent;
use metrics::Measured;
pub use parent::Parent;
use serde_json::{Value, json};

/// The sender, besides the run itself.
#[derive(Debug, Clone, Default, PartialEq)]
pub struct Origin {
    /// Attributes of the resource, `service.name` among them.
    pub resource: Vec<(String, String)>,
    /// The trace that the run belongs to, if the environment names one.
    pub parent: Option<Parent>,
    /// Whether metrics report the increase by this process and not the total.
    pub is_delta: bool,
}

/// Returns the maker of an agent's model, given the names of agent and model.
pub type VendorLookup = fn(&str, Option<&str>) -> Option<&'static str>;

/// Attributes of a span or a measurement.
type Attributes = Vec<(&'static str, Value)>;

/// The fold of a run's events, without those of an earlier process of the same run.
#[derive(Debug)]
pub struct Telemetry {
    model_vendor: VendorLookup,
    run_id: String,
    /// The name of the run's own agent, which holds for every turn.
    agent: String,
    model: Option<String>,
    spans: Vec<Span>,
    measured: Vec<Measured>,
    began: u64,
    last: u64,
}

#[derive(Debug)]
struct Span {
    /// `run`, `task`, `turn` and `check` as in the names of events, or `tool`.
    subject: String,
    name: String,
    /// Number of the event that opened it. No other process of the run uses this number.
    seq: u64,
    parent: Option<usize>,
    start: u64,
    end: Option<u64>,
    attributes: Attributes,
    /// Why it ended with an error.
    error: Option<String>,
    commits: Vec<(u64, String)>,
}

/// The attributes that a span takes from an event or from the usage of a turn: its name, the field, the attribute.
const FIELDS: &[(&str, &str, &str)] = &[
    ("run.started", "/plan/title", "cicd.pipeline.name"),
    ("run.started", "/run_id", "cicd.pipeline.run.id"),
    ("run.started", "/branch", "vcs.ref.head.name"),
    ("run.started", "/base", "vcs.ref.base.revision"),
    ("run.started", "/resumed", "sprag.resumed"),
    ("run.ended", "/status", "sprag.run.status"),
    ("run.ended", "/reason", "sprag.run.reason"),
    ("run.ended", "/head", "vcs.ref.head.revision"),
    ("task.started", "/task", "cicd.pipeline.task.name"),
    ("task.ended", "/status", "sprag.task.status"),
    ("task.ended", "/reason", "sprag.task.reason"),
    ("task.ended", "/attempts", "sprag.task.attempts"),
    ("task.ended", "/nudges", "sprag.task.nudges"),
    ("turn.started", "/agent", "gen_ai.agent.name"),
    ("turn.started", "/purpose", "sprag.turn.purpose"),
    ("turn.started", "/attempt", "sprag.attempt"),
    ("turn.started", "/turn", "sprag.turn"),
    ("agent.session", "/session_id", "gen_ai.conversation.id"),
    ("turn.assessed", "/assessment", "sprag.turn.assessment"),
    ("usage", "/tokens_in", "gen_ai.usage.input_tokens"),
    ("usage", "/tokens_cached", CACHED_TOKENS),
    ("usage", "/tokens_out", "gen_ai.usage.output_tokens"),
    ("usage", "/cost_usd", metrics::COST),
    // The arguments of a call are not sent, because they may contain anything.
    ("agent.tool_call", "/name", "gen_ai.tool.name"),
    ("agent.tool_call", "/id", CALL),
    ("agent.tool_result", "/exit_code", "sprag.tool.exit_code"),
    ("check.started", "/name", "cicd.pipeline.task.name"),
    ("check.started", "/kind", "sprag.check.kind"),
    ("check.started", "/proof", "sprag.proof"),
];

const CACHED_TOKENS: &str = "gen_ai.usage.cache_read.input_tokens";

/// The agent's id of a tool call.
const CALL: &str = "gen_ai.tool.call.id";

/// The attributes of a turn that its measurements have, too.
const OF_TURN: [&str; 4] = [
    "gen_ai.operation.name",
    "gen_ai.agent.name",
    "gen_ai.provider.name",
    "gen_ai.request.model",
];

/// Maximum number of tool calls of one turn that become spans: collectors refuse documents of several
/// megabytes.
const TOOLS_OF_A_TURN: usize = 1_000;

impl Telemetry {
    /// The state before the first event.
    pub fn new(model_vendor: VendorLookup) -> Self {
        Self {
            model_vendor,
            run_id: String::new(),
            agent: String::new(),
            model: None,
            spans: Vec::new(),
            measured: Vec::new(),
            began: 0,
            last: 0,
        }
    }

    /// Processes an event.
    pub fn apply(&mut self, event: &WireEvent) {
        // An event that cannot be serialized is in no report.
        if let Ok(event) = serde_json::to_value(event) {
            self.apply_value(&event);
        }
    }

    fn apply_value(&mut self, event: &Value) {
        let Some(at) = nanos(&event["ts"]) else {
            return;
        };
        // If the clock is set back, no span may end before it starts.
        self.last = self.last.max(at);
        match text(event, "event").split_once('.') {
            Some((subject @ ("run" | "task" | "turn" | "check"), "started")) => {
                self.started(subject, event);
            }
            Some((subject @ ("run" | "task" | "turn" | "check"), "ended")) => {
                self.ended(subject, event);
            }
            Some(("agent", "session")) => {
                if let Some(turn) = self.innermost("turn") {
                    turn.take(event);
                }
            }
            Some(("agent", "tool_call")) => self.tool_called(event),
            Some(("agent", "tool_result")) => self.tool_answered(event),
            Some(("turn", "assessed")) => self.turn_assessed(event),
            Some(("commit", "created")) => {
                let commit = (self.last, text(event, "commit").to_owned());
                if let Some(task) = self.innermost("task") {
                    task.commits.push(commit);
                }
            }
            Some(("retry", "scheduled")) => {
                let kind = vec![("sprag.retry.kind", event["kind"].clone())];
                self.measure(metrics::RETRIES, Some(1.0), kind);
            }
            _ => {}
        }
    }

    fn started(&mut self, subject: &str, event: &Value) {
        let agent = text(event, "agent");
        if subject == "run" {
            self.began = self.last;
            self.run_id = text(event, "run_id").to_owned();
            self.agent = agent.to_owned();
            self.model = event["model"].as_str().map(str::to_owned);
        }
        if subject != "turn" {
            self.open(subject, format!("sprag {subject}"), event);
            return;
        }
        let model = self.model.clone().filter(|_| agent == self.agent);
        let maker = (self.model_vendor)(agent, model.as_deref());
        let turn = self.open(subject, format!("invoke_agent {agent}"), event);
        turn.set("gen_ai.operation.name", json!("invoke_agent"));
        turn.set("gen_ai.provider.name", json!(maker));
        turn.set("gen_ai.request.model", json!(model));
    }

    fn tool_called(&mut self, event: &Value) {
        let is_open_turn = |span: &Span| span.is_open("turn");
        let Some(turn) = self.spans.iter().rposition(is_open_turn) else {
            return;
        };
        let is_tool = |span: &&Span| span.subject == "tool";
        if self.spans[turn..].iter().filter(is_tool).count() < TOOLS_OF_A_TURN {
            let name = format!("execute_tool {}", text(event, "name"));
            let span = self.open("tool", name, event);
            span.parent = Some(turn);
            span.set("gen_ai.operation.name", json!("execute_tool"));
        }
    }

    /// Ends the call with this id, or the latest call if the agent gives no id.
    fn tool_answered(&mut self, event: &Value) {
        let last = self.last;
        let id = (CALL, event["id"].clone());
        let is_it = |span: &&mut Span| {
            span.is_open("tool") && (id.1.is_null() || span.attributes.contains(&id))
        };
        if let Some(tool) = self.spans.iter_mut().rev().find(is_it) {
            tool.end = Some(last);
            tool.take(event);
            tool.error = (event["ok"] == false).then(|| "tool_failed".to_owned());
        }
    }

    fn turn_assessed(&mut self, event: &Value) {
        self.used(&event["usage"]);
        let assessment = text(event, "assessment");
        let faults = ["agent_", "turn_timeout", "policy_violation"];
        let is_fault = faults.iter().any(|fault| assessment.starts_with(fault));
        if let Some(turn) = self.latest_turn() {
            turn.error = is_fault.then(|| assessment.to_owned());
            turn.take(event);
        }
    }

    /// The tokens and the cost of the turn that ended last.
    fn used(&mut self, usage: &Value) {
        if let Some(turn) = self.latest_turn() {
            turn.take_from("usage", usage);
        }
        let about = self.about_latest_turn();
        for (key, kind) in [("tokens_in", "input"), ("tokens_out", "output")] {
            let mut about = about.clone();
            about.push(("gen_ai.token.type", json!(kind)));
            self.measure(metrics::TOKEN_USAGE, usage[key].as_f64(), about);
        }
        self.measure(metrics::COST, usage["cost_usd"].as_f64(), about);
    }

    fn about_latest_turn(&mut self) -> Attributes {
        let turn = self.latest_turn();
        let mut attributes = turn.map(|turn| turn.attributes.clone()).unwrap_or_default();
        attributes.retain(|(key, _)| OF_TURN.contains(key));
        attributes
    }

    fn ended(&mut self, subject: &str, event: &Value) {
        let word = match subject {
            "check" => text(event, "outcome"),
            "turn" => text(event, "exit"),
            _ => text(event, "status"),
        };
        let result = result_of(word);
        // A skipped task or check has no start event.
        let is_own = |span: &&mut Span| {
            let task = ("cicd.pipeline.task.name", event["task"].clone());
            subject != "task" || span.attributes.contains(&task)
        };
        if let Some(span) = self.innermost(subject).filter(is_own) {
            span.take(event);
            span.error = match subject {
                "task" if ["done", "pending"].contains(&word) => None,
                "task" => Some(text(event, "reason").to_owned()),
                // For a turn that was cut short, nothing else reports its usage.
                "turn" => event.get("usage").map(|_| word.to_owned()),
                _ => (!["success", "skip"].contains(&result)).then(|| word.to_owned()),
            };
            match subject {
                "run" => span.set("cicd.pipeline.result", json!(result)),
                "check" => span.set("cicd.pipeline.task.run.result", json!(result)),
                _ => {}
            }
            self.close(subject);
        }
        self.measure_end(subject, result, event);
    }

    fn measure_end(&mut self, subject: &str, result: &str, event: &Value) {
        let field = |key: &str| event[key].clone();
        let seconds = |ms: Option<f64>| ms.map(|ms| ms / 1_000.0);
        let took = seconds(event["duration_ms"].as_f64());
        let (metric, value, about) = match subject {
            "run" => {
                let ms = self.last.saturating_sub(self.began) / 1_000_000;
                let took = seconds(u32::try_from(ms).ok().map(f64::from));
                let (result, status) = (json!(result), field("status"));
                let about = vec![
                    ("cicd.pipeline.result", result),
                    ("sprag.run.status", status),
                ];
                (metrics::RUN_DURATION, took, about)
            }
            "task" => {
                let (status, reason) = (field("status"), field("reason"));
                let about = vec![("sprag.task.status", status), ("sprag.task.reason", reason)];
                (metrics::TASKS, Some(1.0), about)
            }
            "check" => {
                let about = vec![
                    ("cicd.pipeline.task.name", field("name")),
                    ("cicd.pipeline.task.run.result", json!(result)),
                ];
                (metrics::CHECK_DURATION, took, about)
            }
            _ => {
                self.used(&event["usage"]);
                (metrics::TURN_DURATION, took, self.about_latest_turn())
            }
        };
        self.measure(metric, value, about);
    }

    /// Starts a span inside the innermost open one that can contain it.
    fn open(&mut self, subject: &str, name: String, event: &Value) -> &mut Span {
        let holds = |span: &Span| span.is_open("run") || span.is_open("task");
        let mut span = Span {
            subject: subject.to_owned(),
            name,
            seq: event["seq"].as_u64().unwrap_or_default(),
            parent: self.spans.iter().rposition(holds),
            start: self.last,
            end: None,
            attributes: Vec::new(),
            error: None,
            commits: Vec::new(),
        };
        span.take(event);
        self.spans.push_mut(span)
    }

    /// The innermost open span of this kind.
    fn innermost(&mut self, subject: &str) -> Option<&mut Span> {
        let mut latest = self.spans.iter_mut().rev();
        latest.find(|span| span.is_open(subject))
    }

    /// The latest turn, open or ended.
    fn latest_turn(&mut self) -> Option<&mut Span> {
        let mut latest = self.spans.iter_mut().rev();
        latest.find(|span| span.subject == "turn")
    }

    /// Ends a span and all open spans in it.
    fn close(&mut self, subject: &str) {
        let open = self.spans.iter().rposition(|span| span.is_open(subject));
        let inside = self.spans.iter_mut().skip(open.unwrap_or(usize::MAX));
        for span in inside {
            span.end.get_or_insert(self.last);
        }
    }

    fn measure(&mut self, name: &'static str, value: Option<f64>, attributes: Attributes) {
        self.measured.extend(value.map(|value| Measured {
            name,
            value,
            attributes,
        }));
    }

    /// The spans as an `ExportTraceServiceRequest`, or `None` if there are none or the outer trace is not
    /// recorded.
    pub fn traces(&self, origin: &Origin) -> Option<Value> {
        let parent = origin.parent.as_ref();
        if self.spans.is_empty() || parent.is_some_and(|parent| !parent.is_sampled) {
            return None;
        }
        // All processes of a resumed run add to one trace.
        let own = || self.id(None)[..32].to_owned();
        let trace = parent.map_or_else(own, |parent| parent.trace.clone());
        let span = |span| self.span(span, &trace, parent);
        let spans: Value = self.spans.iter().map(span).collect();
        Some(
            json!({ "resourceSpans": [{ "resource": self.resource(origin),
            "scopeSpans": [{ "scope": scope(), "spans": spans }] }] }),
        )
    }

    /// The measurements as an `ExportMetricsServiceRequest`, or `None` if there are none.
    pub fn metrics(&self, origin: &Origin) -> Option<Value> {
        let all = metrics::metrics(&self.measured, self.began, self.last, origin.is_delta);
        (!all.is_empty()).then(|| {
            json!({ "resourceMetrics": [{ "resource": self.resource(origin),
                "scopeMetrics": [{ "scope": scope(), "metrics": all }] }] })
        })
    }

    fn resource(&self, origin: &Origin) -> Value {
        let own = [
            ("service.name", "sprag"),
            ("service.version", env!("CARGO_PKG_VERSION")),
            // Without it, two simultaneous runs would share one series.
            ("service.instance.id", &self.run_id),
            ("telemetry.sdk.language", "rust"),
            ("telemetry.sdk.name", "sprag"),
            ("telemetry.sdk.version", env!("CARGO_PKG_VERSION")),
        ];
        let given = &origin.resource;
        let mut own = own.to_vec();
        own.retain(|(key, _)| given.iter().all(|(known, _)| known != key));
        let given = given
            .iter()
            .map(|(key, value)| (key.as_str(), value.as_str()));
        let all = own.into_iter().chain(given);
        let all = all.map(|(key, value)| attribute(key, &json!(value)));
        json!({ "attributes": all.collect::<Value>() })
    }

    /// The id of the trace, or of the span that this event opened, in hexadecimal digits.
    fn id(&self, seq: Option<u64>) -> String {
        let seed = format!("{}/{}", self.run_id, seq.unwrap_or_default());
        blake3::hash(seed.as_bytes()).to_hex().to_string()
    }

    fn span(&self, span: &Span, trace: &str, parent: Option<&Parent>) -> Value {
        let id = |span: &Span| self.id(Some(span.seq))[..16].to_owned();
        // A turn is a client span, because the agent is another program. All others are internal.
        let kind = if span.subject == "turn" { 3 } else { 1 };
        let error = span.error.iter().map(|error| ("error.type", json!(error)));
        let attributes = span.attributes.iter().cloned().chain(error);
        let commits = span.commits.iter().map(|(at, commit)| {
            json!({ "timeUnixNano": at.to_string(), "name": "sprag.commit",
                "attributes": [attribute("vcs.ref.head.revision", &json!(commit))] })
        });
        let mut all = json!({
            "traceId": trace,
            "spanId": id(span),
            "name": span.name,
            "kind": kind,
            "startTimeUnixNano": span.start.to_string(),
            "endTimeUnixNano": span.end.unwrap_or(self.last).to_string(),
            "attributes": attributes.map(|(key, value)| attribute(key, &value)).collect::<Value>(),
            "events": commits.collect::<Value>(),
        });
        let above = match span.parent {
            Some(index) => Some(id(&self.spans[index])),
            None => parent.map(|parent| parent.span.clone()),
        };
        if let Some(above) = above {
            all["parentSpanId"] = json!(above);
        }
        if span.error.is_some() {
            all["status"] = json!({ "code": 2 });
        }
        all
    }
}

impl Span {
    fn is_open(&self, subject: &str) -> bool {
        self.subject == subject && self.end.is_none()
    }

    /// Sets an attribute, unless its value is unknown.
    fn set(&mut self, key: &'static str, value: Value) {
        if !value.is_null() {
            self.attributes.push((key, value));
        }
    }

    /// Takes the attributes that an event has for it.
    fn take(&mut self, event: &Value) {
        self.take_from(text(event, "event"), event);
    }

    fn take_from(&mut self, name: &str, fields: &Value) {
        for (_, field, attribute) in FIELDS.iter().filter(|row| row.0 == name) {
            let value = fields.pointer(field).cloned();
            self.set(attribute, value.unwrap_or_default());
        }
    }
}

/// The result of a run with this status, or of a check with this outcome, in the words of the conventions.
fn result_of(word: &str) -> &'static str {
    match word {
        "passed" | "success" | "unverified" | "no_work" | "answered" => "success",
        "aborted" | "cancelled" => "cancellation",
        "timed_out" | "budget" | "deadline" => "timeout",
        "signalled" | "not_started" | "environment" | "invalid" => "error",
        "skipped" => "skip",
        _ => "failure",
    }
}

fn scope() -> Value {
    json!({ "name": "sprag", "version": env!("CARGO_PKG_VERSION") })
}

fn text<'v>(event: &'v Value, key: &str) -> &'v str {
    event[key].as_str().unwrap_or_default()
}

/// The time of an event in nanoseconds since 1970.
fn nanos(ts: &Value) -> Option<u64> {
    let ts: jiff::Timestamp = ts.as_str()?.parse().ok()?;
    u64::try_from(ts.as_nanosecond()).ok()
}

/// An attribute with its value. 64-bit integers are strings in JSON.
fn attribute(key: &str, value: &Value) -> Value {
    let value = match value {
        Value::Bool(truth) => json!({ "boolValue": truth }),
        Value::Number(number) if number.is_f64() => json!({ "doubleValue": number }),
        Value::Number(number) => json!({ "intValue": number.to_string() }),
        Value::String(text) => json!({ "stringValue": text }),
        other => json!({ "stringValue": other.to_string() }),
    };
    json!({ "key": key, "value": value })
}

#[cfg(test)]
mod tests;
