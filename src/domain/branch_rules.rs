//! The rules of a branch on GitHub: which of them certainly refuse what a run is going to push.

use regex::Regex;
use serde::Deserialize;
use serde_json::Value;

/// An active rule of a branch, as GitHub returns it.
#[derive(Debug, Clone, PartialEq, Deserialize)]
pub struct Rule {
    /// Its type, such as `required_signatures`.
    #[serde(rename = "type")]
    pub kind: String,
    /// The ruleset that it belongs to.
    #[serde(default)]
    pub ruleset_id: u64,
    /// Its parameters, which depend on the type.
    #[serde(default)]
    parameters: Value,
}

/// What a run is going to push.
#[derive(Debug, Clone, Copy)]
pub struct PlannedPush<'a> {
    /// The short name of the branch.
    pub branch: &'a str,
    /// Whether the push creates the branch.
    pub is_new: bool,
    /// Whether it is the branch that a pull request would be for.
    pub is_base: bool,
    /// Whether git or GitHub signs the commits.
    pub is_signed: bool,
    /// The address of the commits' author and committer, unless GitHub makes the commits.
    pub email: Option<&'a str>,
}

/// The objection of a rule.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Refusal {
    /// What the rule requires, as a clause.
    pub why: String,
    /// How the run meets the requirement.
    pub remedy: &'static str,
}

const OTHER_BRANCH: &str =
    "set `branch` to a template whose names the ruleset accepts, such as `feature/{slug}`";
const OWN_BRANCH: &str = "set `pull-request: draft`, so that the work gets its own branch";

/// The objection of a rule to a push. A rule whose outcome cannot be known before the push has none.
pub fn refusal(rule: &Rule, push: &PlannedPush<'_>) -> Option<Refusal> {
    let existing = if push.is_base {
        OWN_BRANCH
    } else {
        "exclude the branch from the ruleset"
    };
    let (why, remedy) = match (rule.kind.as_str(), push.is_new) {
        ("required_signatures", _) if !push.is_signed => (
            "commits must be signed".to_owned(),
            "set `commit-via: api`, so that GitHub signs the commits",
        ),
        ("creation", true) => (
            "only accounts on its bypass list may create this branch".to_owned(),
            OTHER_BRANCH,
        ),
        ("update", false) => (
            "only accounts on its bypass list may push to this branch".to_owned(),
            existing,
        ),
        ("pull_request" | "merge_queue", false) => {
            ("changes must come by a pull request".to_owned(), existing)
        }
        ("required_status_checks", false) => (required_checks(rule)?, existing),
        ("branch_name_pattern", true) => {
            let full = format!("refs/heads/{}", push.branch);
            (
                unmatched(rule, "its name", &[push.branch, &full])?,
                OTHER_BRANCH,
            )
        }
        ("commit_author_email_pattern" | "committer_email_pattern", _) => (
            unmatched(rule, "the address of the commits' author", &[push.email?])?,
            "set `commit-via: api`, so that the commits are those of the token's account",
        ),
        _ => return None,
    };
    Some(Refusal { why, remedy })
}

/// Why a push to an existing branch may be refused, which is under this classic protection. Only administrators may
/// read more of it than its checks.
pub fn doubt(protection: &Value, push: &PlannedPush<'_>) -> Option<String> {
    protection["enabled"].as_bool().filter(|enabled| *enabled)?;
    let checks = protection["required_status_checks"]["contexts"].as_array()?;
    let names: Vec<&str> = checks.iter().filter_map(Value::as_str).collect();
    let requires = match names.as_slice() {
        [] => String::new(),
        names => format!(", which requires the checks {}", names.join(", ")),
    };
    let remedy = if push.is_base {
        OWN_BRANCH
    } else {
        "else the work goes to a rescue branch"
    };
    Some(format!(
        "GitHub may refuse the push to {}: it has a branch protection{requires}, whose other rules the token cannot read; {remedy}",
        push.branch
    ))
}

/// The form that a rule requires of commit messages, as a clause. No message is known before the work.
pub fn form_of_messages(rule: &Rule) -> Option<String> {
    let is_about_messages = rule.kind == "commit_message_pattern";
    let pattern = is_about_messages.then(|| Pattern::of(rule)).flatten()?;
    Some(format!("commit messages {}", pattern.requirement()))
}

fn required_checks(rule: &Rule) -> Option<String> {
    let checks = rule.parameters.get("required_status_checks")?.as_array()?;
    let names = checks
        .iter()
        .filter_map(|check| check.get("context")?.as_str());
    let names: Vec<&str> = names.collect();
    (!names.is_empty()).then(|| format!("commits must have passed {} before", names.join(", ")))
}

/// The clause if none of the forms of a text meets the rule.
fn unmatched(rule: &Rule, what: &str, forms: &[&str]) -> Option<String> {
    let pattern = Pattern::of(rule)?;
    for form in forms {
        if pattern.accepts(form)? {
            return None;
        }
    }
    Some(format!("{what} {}", pattern.requirement()))
}

#[derive(Deserialize)]
struct Pattern {
    operator: String,
    pattern: String,
    #[serde(default)]
    negate: bool,
}

impl Pattern {
    fn of(rule: &Rule) -> Option<Self> {
        Self::deserialize(&rule.parameters).ok()
    }

    /// Whether the rule accepts a text; `None` for an operator or an expression that is not understood here.
    fn accepts(&self, text: &str) -> Option<bool> {
        let matches = match self.operator.as_str() {
            "starts_with" => text.starts_with(&self.pattern),
            "ends_with" => text.ends_with(&self.pattern),
            "contains" => text.contains(&self.pattern),
            "regex" => Regex::new(&self.pattern).ok()?.is_match(text),
            _ => return None,
        };
        Some(matches != self.negate)
    }

    fn requirement(&self) -> String {
        let must = if self.negate { "must not" } else { "must" };
        let verb = match self.operator.as_str() {
            "starts_with" => "start with",
            "ends_with" => "end with",
            "contains" => "contain",
            _ => "match",
        };
        format!("{must} {verb} `{}`", self.pattern)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    fn rule(kind: &str, parameters: Value) -> Rule {
        let rule = json!({ "type": kind, "ruleset_id": 7, "parameters": parameters });
        serde_json::from_value(rule).unwrap()
    }

    fn pattern(operator: &str, text: &str, negate: bool) -> Value {
        json!({ "operator": operator, "pattern": text, "negate": negate })
    }

    const NEW: PlannedPush<'_> = PlannedPush {
        branch: "sprag/issue-3",
        is_new: true,
        is_base: false,
        is_signed: false,
        email: Some("bot@example.org"),
    };

    #[test]
    fn each_rule_objects_only_to_a_push_that_it_refuses() {
        let old = PlannedPush {
            is_new: false,
            ..NEW
        };
        let checks = json!({ "required_status_checks": [{ "context": "test" }] });
        let none = json!({ "required_status_checks": [] });
        let said = |kind: &str, parameters: &Value, push: &PlannedPush<'_>| {
            refusal(&rule(kind, parameters.clone()), push).map(|refusal| refusal.why)
        };
        let null = Value::Null;
        let table = [
            (
                "required_signatures",
                &null,
                Some("commits must be signed"),
                Some("commits must be signed"),
            ),
            (
                "creation",
                &null,
                Some("only accounts on its bypass list may create this branch"),
                None,
            ),
            (
                "update",
                &null,
                None,
                Some("only accounts on its bypass list may push to this branch"),
            ),
            (
                "pull_request",
                &null,
                None,
                Some("changes must come by a pull request"),
            ),
            (
                "merge_queue",
                &null,
                None,
                Some("changes must come by a pull request"),
            ),
            (
                "required_status_checks",
                &checks,
                None,
                Some("commits must have passed test before"),
            ),
            ("required_status_checks", &none, None, None),
            ("required_linear_history", &null, None, None),
            ("some_day", &null, None, None),
        ];
        for (kind, parameters, of_new, of_old) in table {
            assert_eq!(said(kind, parameters, &NEW).as_deref(), of_new, "{kind}");
            assert_eq!(said(kind, parameters, &old).as_deref(), of_old, "{kind}");
        }
        let signed = PlannedPush {
            is_signed: true,
            ..NEW
        };
        assert_eq!(said("required_signatures", &null, &signed), None);
    }

    #[test]
    fn a_pattern_is_read_as_github_reads_it() {
        let table = [
            ("starts_with", "sprag/", false, None),
            ("starts_with", "refs/heads/sprag/", false, None),
            (
                "starts_with",
                "feature/",
                false,
                Some("its name must start with `feature/`"),
            ),
            (
                "ends_with",
                "-3",
                true,
                Some("its name must not end with `-3`"),
            ),
            ("contains", "issue", false, None),
            ("regex", r"^\w+/issue-\d+$", false, None),
            (
                "regex",
                r"[A-Z]+-\d",
                false,
                Some(r"its name must match `[A-Z]+-\d`"),
            ),
            ("regex", "(", false, None),
            ("like", "x", false, None),
        ];
        for (operator, text, negate, expected) in table {
            let rule = rule("branch_name_pattern", pattern(operator, text, negate));
            let said = refusal(&rule, &NEW).map(|refusal| refusal.why);
            assert_eq!(said.as_deref(), expected, "{operator} {text}");
        }
    }

    #[test]
    fn addresses_are_compared_and_messages_only_named() {
        let address = rule(
            "committer_email_pattern",
            pattern("ends_with", "@corp.example", false),
        );
        assert!(refusal(&address, &NEW).is_some());
        let by_github = PlannedPush { email: None, ..NEW };
        assert_eq!(refusal(&address, &by_github), None);
        let messages = rule(
            "commit_message_pattern",
            pattern("regex", "[A-Z]+-[0-9]+", false),
        );
        assert_eq!(refusal(&messages, &NEW), None);
        let form = form_of_messages(&messages).unwrap();
        assert_eq!(form, "commit messages must match `[A-Z]+-[0-9]+`");
        assert_eq!(form_of_messages(&address), None);
    }
}
