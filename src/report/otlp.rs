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
use serde_json::{Map, Value, json};

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
    what: SpanSubject,
    name: String,
    /// Number of the event that opened it. No other process of the run uses this number.
    seq: u64,
    parent: Option<usize>,
    start: u64,
    end: Option<u64>,
    attributes: Vec<(&'static str, Value)>,
    /// Why it ended with an error.
    error: Option<String>,
    commits: Vec<(u64, String)>,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum SpanSubject {
    Run,
    Task,
    Turn,
    Tool,
    Check,
}

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
        match text(event, "event") {
            "run.started" => self.run_started(event),
            "task.started" => {
                let id = text(event, "task").to_owned();
                let span = self.open(SpanSubject::Task, "sprag task".into(), event);
                span.set("cicd.pipeline.task.name", id);
            }
            "turn.started" => self.turn_started(event),
            "agent.session" => {
                let id = text(event, "session_id").to_owned();
                if let Some(turn) = self.innermost(SpanSubject::Turn) {
                    turn.set("gen_ai.conversation.id", id);
                }
            }
            "agent.tool_call" => self.tool_called(event),
            "agent.tool_result" => self.tool_answered(event),
            "turn.ended" => self.turn_ended(event),
            "turn.assessed" => self.turn_assessed(event),
            "check.started" => {
                let (name, kind) = (
                    text(event, "name").to_owned(),
                    text(event, "kind").to_owned(),
                );
                let proof = event
                    .get("proof")
                    .and_then(Value::as_str)
                    .map(str::to_owned);
                let span = self.open(SpanSubject::Check, "sprag check".into(), event);
                span.set("cicd.pipeline.task.name", name);
                span.set("sprag.check.kind", kind);
                if let Some(proof) = proof {
                    span.set("sprag.proof", proof);
                }
            }
            "check.ended" => self.check_ended(event),
            "commit.created" => {
                let commit = text(event, "commit").to_owned();
                let at = self.last;
                if let Some(task) = self.innermost(SpanSubject::Task) {
                    task.commits.push((at, commit));
                }
            }
            "retry.scheduled" => {
                let kind = json!(text(event, "kind"));
                self.measure("sprag.retries", 1.0, vec![("sprag.retry.kind", kind)]);
            }
            "task.ended" => self.task_ended(event),
            "run.ended" => self.run_ended(event),
            _ => {}
        }
    }

    fn run_started(&mut self, event: &Value) {
        self.began = self.last;
        self.run_id = text(event, "run_id").to_owned();
        self.agent = text(event, "agent").to_owned();
        self.model = event["model"].as_str().map(str::to_owned);
        let of_run = [
            ("cicd.pipeline.name", event["plan"]["title"].clone()),
            ("cicd.pipeline.run.id", event["run_id"].clone()),
            ("vcs.ref.head.name", event["branch"].clone()),
            ("vcs.ref.base.revision", event["base"].clone()),
            ("sprag.resumed", event["resumed"].clone()),
        ];
        let span = self.open(SpanSubject::Run, "sprag run".into(), event);
        of_run
            .into_iter()
            .for_each(|(key, value)| span.set(key, value));
    }

    fn turn_started(&mut self, event: &Value) {
        let agent = text(event, "agent").to_owned();
        let about = self.about_agent(&agent);
        let purpose = text(event, "purpose").to_owned();
        let span = self.open(SpanSubject::Turn, format!("invoke_agent {agent}"), event);
        span.attributes.extend(about);
        span.set("sprag.turn.purpose", purpose);
        for key in ["attempt", "turn"] {
            let name = ["sprag.attempt", "sprag.turn"][usize::from(key == "turn")];
            span.set(name, event[key].clone());
        }
    }

    /// The attributes of every span and every measurement of a turn.
    fn about_agent(&self, agent: &str) -> Vec<(&'static str, Value)> {
        let mut about = vec![
            ("gen_ai.operation.name", json!("invoke_agent")),
            ("gen_ai.agent.name", json!(agent)),
        ];
        let model = self.model.as_deref().filter(|_| agent == self.agent);
        if let Some(maker) = (self.model_vendor)(agent, model) {
            about.push(("gen_ai.provider.name", json!(maker)));
        }
        if let Some(model) = model {
            about.push(("gen_ai.request.model", json!(model)));
        }
        about
    }

    /// The call's arguments are not sent, because they may contain anything: only the tool's name and the
    /// agent's id of the call.
    fn tool_called(&mut self, event: &Value) {
        let Some(turn) = self.spans.iter().rposition(Span::is_open_turn) else {
            return;
        };
        let of_turn = self.spans[turn..].iter();
        let tools = of_turn
            .filter(|span| span.what == SpanSubject::Tool)
            .count();
        if tools == TOOLS_OF_A_TURN {
            return;
        }
        let name = text(event, "name").to_owned();
        let id = event["id"].clone();
        let span = self.open(SpanSubject::Tool, format!("execute_tool {name}"), event);
        span.parent = Some(turn);
        span.set("gen_ai.operation.name", "execute_tool");
        span.set("gen_ai.tool.name", name);
        span.set("gen_ai.tool.call.id", id);
    }

    /// Ends the call with this id, or the latest call if the agent gives no id.
    fn tool_answered(&mut self, event: &Value) {
        let last = self.last;
        let id = ("gen_ai.tool.call.id", event["id"].clone());
        let is_it = |span: &&mut Span| {
            let is_open = span.what == SpanSubject::Tool && span.end.is_none();
            is_open && (id.1.is_null() || span.attributes.contains(&id))
        };
        if let Some(tool) = self.spans.iter_mut().rev().find(is_it) {
            tool.end = Some(last);
            tool.set("sprag.tool.exit_code", event["exit_code"].clone());
            tool.error = (event["ok"] == false).then(|| "tool_failed".to_owned());
        }
    }

    fn turn_ended(&mut self, event: &Value) {
        self.close(SpanSubject::Turn);
        // For a turn that was cut short, nothing else reports its usage.
        if event.get("usage").is_some() {
            self.used(&event["usage"]);
            let exit = text(event, "exit").to_owned();
            if let Some(turn) = self.latest(SpanSubject::Turn) {
                turn.error = Some(exit);
            }
        }
        let seconds = event["duration_ms"].as_f64().unwrap_or_default() / 1000.0;
        let about = self.about_latest_turn();
        self.measure("gen_ai.client.operation.duration", seconds, about);
    }

    fn turn_assessed(&mut self, event: &Value) {
        self.used(&event["usage"]);
        let assessment = text(event, "assessment").to_owned();
        let is_fault = ["agent_", "turn_timeout", "policy_violation"]
            .iter()
            .any(|fault| assessment.starts_with(fault));
        if let Some(turn) = self.latest(SpanSubject::Turn) {
            turn.error = is_fault.then(|| assessment.clone());
            turn.set("sprag.turn.assessment", assessment);
        }
    }

    /// The tokens and the cost of the turn that ended last.
    fn used(&mut self, usage: &Value) {
        let about = self.about_latest_turn();
        let known = [
            ("tokens_in", "gen_ai.usage.input_tokens", "input"),
            ("tokens_out", "gen_ai.usage.output_tokens", "output"),
        ];
        for (key, attribute, kind) in known {
            let Some(tokens) = usage[key].as_u64() else {
                continue;
            };
            if let Some(turn) = self.latest(SpanSubject::Turn) {
                turn.set(attribute, tokens);
            }
            let mut about = about.clone();
            about.push(("gen_ai.token.type", json!(kind)));
            #[expect(clippy::cast_precision_loss, reason = "far below the 2^53 that fit")]
            self.measure("gen_ai.client.token.usage", tokens as f64, about);
        }
        let turn = self.latest(SpanSubject::Turn);
        if let (Some(turn), Some(cached)) = (turn, usage["tokens_cached"].as_u64()) {
            turn.set("gen_ai.usage.cache_read.input_tokens", cached);
        }
        if let Some(cost) = usage["cost_usd"].as_f64() {
            if let Some(turn) = self.latest(SpanSubject::Turn) {
                turn.set("sprag.cost", cost);
            }
            self.measure("sprag.cost", cost, about);
        }
    }

    fn about_latest_turn(&mut self) -> Vec<(&'static str, Value)> {
        let turn = self.latest(SpanSubject::Turn);
        let of_turn = turn.map_or(&[][..], |turn| &turn.attributes);
        let shared = [
            "gen_ai.operation.name",
            "gen_ai.agent.name",
            "gen_ai.provider.name",
            "gen_ai.request.model",
        ];
        let kept = of_turn.iter().filter(|(key, _)| shared.contains(key));
        kept.cloned().collect()
    }

    fn check_ended(&mut self, event: &Value) {
        let outcome = text(event, "outcome").to_owned();
        let result = match outcome.as_str() {
            "passed" => "success",
            "failed" => "failure",
            "timed_out" => "timeout",
            "aborted" => "cancellation",
            "skipped" => "skip",
            _ => "error",
        };
        // A skipped check has no start event.
        if let Some(check) = self.innermost(SpanSubject::Check) {
            check.set("cicd.pipeline.task.run.result", result);
            check.error = (!["success", "skip"].contains(&result)).then_some(outcome);
        }
        self.close(SpanSubject::Check);
        let seconds = event["duration_ms"].as_f64().unwrap_or_default() / 1000.0;
        let about = vec![
            ("cicd.pipeline.task.name", event["name"].clone()),
            ("cicd.pipeline.task.run.result", json!(result)),
        ];
        self.measure("sprag.check.duration", seconds, about);
    }

    fn task_ended(&mut self, event: &Value) {
        let (status, reason) = (event["status"].clone(), event["reason"].clone());
        let about = vec![
            ("sprag.task.status", status.clone()),
            ("sprag.task.reason", reason.clone()),
        ];
        self.measure("sprag.tasks", 1.0, about);
        let id = text(event, "task").to_owned();
        let is_its_own = |task: &&mut Span| {
            let name = ("cicd.pipeline.task.name", json!(id));
            task.attributes.contains(&name)
        };
        // A skipped task has no start event.
        let Some(task) = self.innermost(SpanSubject::Task).filter(is_its_own) else {
            return;
        };
        task.error = match (status.as_str(), reason.as_str()) {
            (Some("done" | "pending"), _) => None,
            (_, reason) => Some(reason.unwrap_or_default().to_owned()),
        };
        task.set("sprag.task.status", status);
        task.set("sprag.task.reason", reason);
        for (key, name) in [
            ("attempts", "sprag.task.attempts"),
            ("nudges", "sprag.task.nudges"),
        ] {
            task.set(name, event[key].clone());
        }
        self.close(SpanSubject::Task);
    }

    fn run_ended(&mut self, event: &Value) {
        let status = text(event, "status").to_owned();
        let result = match status.as_str() {
            "success" | "unverified" | "no_work" => "success",
            "cancelled" => "cancellation",
            "budget" | "deadline" => "timeout",
            "environment" | "invalid" => "error",
            _ => "failure",
        };
        let end = [
            ("cicd.pipeline.result", json!(result)),
            ("sprag.run.status", json!(status)),
            ("sprag.run.reason", event["reason"].clone()),
            ("vcs.ref.head.revision", event["head"].clone()),
        ];
        if let Some(run) = self.innermost(SpanSubject::Run) {
            end.clone()
                .into_iter()
                .for_each(|(key, value)| run.set(key, value));
            run.error = (result != "success").then_some(status);
        }
        self.close(SpanSubject::Run);
        #[expect(
            clippy::cast_precision_loss,
            reason = "the count of nanoseconds is shown as seconds"
        )]
        let seconds = self.last.saturating_sub(self.began) as f64 / 1e9;
        let about = end.into_iter().take(2).collect();
        self.measure("cicd.pipeline.run.duration", seconds, about);
    }

    /// Starts a span inside the innermost open one that can contain it.
    fn open(&mut self, what: SpanSubject, name: String, event: &Value) -> &mut Span {
        let holds = |span: &Span| {
            span.end.is_none() && [SpanSubject::Run, SpanSubject::Task].contains(&span.what)
        };
        let parent = self.spans.iter().rposition(holds);
        let index = self.spans.len();
        self.spans.push(Span {
            what,
            name,
            seq: event["seq"].as_u64().unwrap_or_default(),
            parent,
            start: self.last,
            end: None,
            attributes: Vec::new(),
            error: None,
            commits: Vec::new(),
        });
        &mut self.spans[index]
    }

    /// The innermost open span of this kind.
    fn innermost(&mut self, what: SpanSubject) -> Option<&mut Span> {
        let is_it = |span: &&mut Span| span.what == what && span.end.is_none();
        self.spans.iter_mut().rev().find(is_it)
    }

    /// The latest span of this kind, open or ended.
    fn latest(&mut self, what: SpanSubject) -> Option<&mut Span> {
        self.spans.iter_mut().rev().find(|span| span.what == what)
    }

    /// Ends a span and all open spans in it.
    fn close(&mut self, what: SpanSubject) {
        let open = |span: &Span| span.what == what && span.end.is_none();
        let Some(from) = self.spans.iter().rposition(open) else {
            return;
        };
        for span in &mut self.spans[from..] {
            span.end.get_or_insert(self.last);
        }
    }

    fn measure(&mut self, name: &'static str, value: f64, attributes: Vec<(&'static str, Value)>) {
        self.measured.push(Measured {
            name,
            value,
            attributes,
        });
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
        let spans = self
            .spans
            .iter()
            .map(|span| self.span(span, &trace, parent));
        let spans: Vec<Value> = spans.collect();
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
        let named = |key: &str| origin.resource.iter().any(|(known, _)| known == key);
        let own = [
            ("service.name", "sprag"),
            ("service.version", env!("CARGO_PKG_VERSION")),
            // Without it, two simultaneous runs would share one series.
            ("service.instance.id", &self.run_id),
            ("telemetry.sdk.language", "rust"),
            ("telemetry.sdk.name", "sprag"),
            ("telemetry.sdk.version", env!("CARGO_PKG_VERSION")),
        ]
        .into_iter()
        .filter(|(key, _)| !named(key));
        let given = origin
            .resource
            .iter()
            .map(|(key, value)| (key.as_str(), value.as_str()));
        let all = own
            .chain(given)
            .map(|(key, value)| attribute(key, &json!(value)));
        json!({ "attributes": all.collect::<Vec<_>>() })
    }

    /// The id of the trace, or of the span that this event opened, in hexadecimal digits.
    fn id(&self, seq: Option<u64>) -> String {
        let seed = format!("{}/{}", self.run_id, seq.unwrap_or_default());
        blake3::hash(seed.as_bytes()).to_hex().to_string()
    }

    fn span(&self, span: &Span, trace: &str, parent: Option<&Parent>) -> Value {
        let id = |span: &Span| self.id(Some(span.seq))[..16].to_owned();
        let above = match span.parent {
            Some(index) => Some(id(&self.spans[index])),
            None => parent.map(|parent| parent.span.clone()),
        };
        let mut all = Map::new();
        all.insert("traceId".into(), json!(trace));
        all.insert("spanId".into(), json!(id(span)));
        if let Some(above) = above {
            all.insert("parentSpanId".into(), json!(above));
        }
        all.insert("name".into(), json!(span.name));
        // A turn is a client span, because the agent is another program. All others are internal.
        let kind = if span.what == SpanSubject::Turn { 3 } else { 1 };
        all.insert("kind".into(), json!(kind));
        all.insert("startTimeUnixNano".into(), json!(span.start.to_string()));
        let end = span.end.unwrap_or(self.last);
        all.insert("endTimeUnixNano".into(), json!(end.to_string()));
        let error = span.error.iter().map(|error| ("error.type", json!(error)));
        let attributes = span.attributes.iter().cloned().chain(error);
        let attributes: Vec<Value> = attributes
            .map(|(key, value)| attribute(key, &value))
            .collect();
        all.insert("attributes".into(), json!(attributes));
        let commits = span.commits.iter().map(|(at, commit)| {
            json!({ "timeUnixNano": at.to_string(), "name": "sprag.commit",
                "attributes": [attribute("vcs.ref.head.revision", &json!(commit))] })
        });
        all.insert("events".into(), commits.collect());
        if span.error.is_some() {
            all.insert("status".into(), json!({ "code": 2 }));
        }
        Value::Object(all)
    }
}

impl Span {
    fn is_open_turn(&self) -> bool {
        self.what == SpanSubject::Turn && self.end.is_none()
    }

    /// Sets an attribute, unless its value is unknown.
    fn set(&mut self, key: &'static str, value: impl Into<Value>) {
        let value = value.into();
        if !value.is_null() {
            self.attributes.push((key, value));
        }
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
