//! The part of the schema that the model knows, and the faults of a query against it.

use crate::support::github::graphql_text::{Field, Selection, parse};
use serde_json::Value;

/// Object types with their fields and what those are; an empty type is a scalar.
const TYPES: &[(&str, &[(&str, &str)])] = &[
    ("Query", &[("repository", "Repository"), ("viewer", "User")]),
    (
        "Mutation",
        &[
            ("createCommitOnBranch", "CreateCommitOnBranchPayload"),
            ("resolveReviewThread", "ResolveReviewThreadPayload"),
        ],
    ),
    (
        "ResolveReviewThreadPayload",
        &[
            ("clientMutationId", ""),
            ("thread", "PullRequestReviewThread"),
        ],
    ),
    (
        "PullRequest",
        &[
            ("id", ""),
            ("number", ""),
            ("reviewThreads", "PullRequestReviewThreadConnection"),
        ],
    ),
    (
        "PullRequestReviewThreadConnection",
        &[
            ("nodes", "PullRequestReviewThread"),
            ("pageInfo", "PageInfo"),
            ("totalCount", ""),
        ],
    ),
    (
        "PageInfo",
        &[
            ("endCursor", ""),
            ("hasNextPage", ""),
            ("hasPreviousPage", ""),
            ("startCursor", ""),
        ],
    ),
    (
        "PullRequestReviewThread",
        &[
            ("comments", "PullRequestReviewCommentConnection"),
            ("id", ""),
            ("isOutdated", ""),
            ("isResolved", ""),
            ("line", ""),
            ("path", ""),
        ],
    ),
    (
        "PullRequestReviewCommentConnection",
        &[
            ("nodes", "PullRequestReviewComment"),
            ("pageInfo", "PageInfo"),
            ("totalCount", ""),
        ],
    ),
    (
        "PullRequestReviewComment",
        &[("body", ""), ("id", ""), ("path", "")],
    ),
    ("User", &[("login", ""), ("id", "")]),
    (
        "CreateCommitOnBranchPayload",
        &[
            ("clientMutationId", ""),
            ("commit", "Commit"),
            ("ref", "Ref"),
        ],
    ),
    (
        "Repository",
        &[
            ("nameWithOwner", ""),
            ("isFork", ""),
            ("isPrivate", ""),
            ("object", "GitObject"),
            ("ref", "Ref"),
            ("defaultBranchRef", "Ref"),
            ("pullRequest", "PullRequest"),
        ],
    ),
    (
        "Ref",
        &[
            ("id", ""),
            ("name", ""),
            ("prefix", ""),
            ("target", "GitObject"),
        ],
    ),
    (
        "GitObject",
        &[
            ("id", ""),
            ("oid", ""),
            ("abbreviatedOid", ""),
            ("commitUrl", ""),
        ],
    ),
    (
        "Commit",
        &[
            ("id", ""),
            ("oid", ""),
            ("abbreviatedOid", ""),
            ("commitUrl", ""),
            ("url", ""),
            ("message", ""),
            ("messageHeadline", ""),
            ("messageBody", ""),
            ("committedDate", ""),
            ("authoredDate", ""),
            ("signature", "GitSignature"),
        ],
    ),
    (
        "GitSignature",
        &[
            ("isValid", ""),
            ("wasSignedByGitHub", ""),
            ("state", ""),
            ("email", ""),
        ],
    ),
];

/// Fields with arguments, by their type and name.
const ARGUMENTS: &[(&str, &str, &[&str])] = &[
    ("Query", "repository", &["owner", "name", "followRenames"]),
    ("Mutation", "createCommitOnBranch", &["input"]),
    ("Repository", "object", &["oid", "expression"]),
    ("Mutation", "resolveReviewThread", &["input"]),
    ("Repository", "ref", &["qualifiedName"]),
    ("Repository", "pullRequest", &["number"]),
    (
        "PullRequest",
        "reviewThreads",
        &["after", "before", "first", "last"],
    ),
    (
        "PullRequestReviewThread",
        "comments",
        &["after", "before", "first", "last", "skip"],
    ),
];

/// A field's name, its type (empty for text), and whether it has to be there.
type InputField = (&'static str, &'static str, bool);

/// Input objects with their fields.
const INPUTS: &[(&str, &[InputField])] = &[
    (
        "CreateCommitOnBranchInput",
        &[
            ("branch", "CommittableBranch", true),
            ("clientMutationId", "", false),
            ("expectedHeadOid", "", true),
            ("fileChanges", "FileChanges", false),
            ("message", "CommitMessage", true),
        ],
    ),
    (
        "ResolveReviewThreadInput",
        &[("clientMutationId", "", false), ("threadId", "", true)],
    ),
    (
        "CommittableBranch",
        &[
            ("branchName", "", false),
            ("id", "", false),
            ("repositoryNameWithOwner", "", false),
        ],
    ),
    (
        "FileChanges",
        &[
            ("additions", "FileAddition", false),
            ("deletions", "FileDeletion", false),
        ],
    ),
    (
        "FileAddition",
        &[("contents", "", true), ("path", "", true)],
    ),
    ("FileDeletion", &[("path", "", true)]),
    (
        "CommitMessage",
        &[("body", "", false), ("headline", "", true)],
    ),
];

/// What is wrong with a request's body.
pub fn faults(body: &Value) -> Vec<String> {
    let fields = body.as_object().into_iter().flatten();
    let known = ["query", "variables", "operationName"];
    let mut faults: Vec<String> = fields
        .filter(|(name, _)| !known.contains(&name.as_str()))
        .map(|(name, _)| format!("unknown field {name}"))
        .collect();
    match parse(
        body["query"].as_str().unwrap_or_default(),
        &body["variables"],
    ) {
        Err(fault) => faults.push(fault),
        Ok((root, selections)) => faults.extend(selection_faults(root, &selections)),
    }
    faults
}

fn selection_faults(on: &str, selections: &[Selection]) -> Vec<String> {
    let mut faults = Vec::new();
    let known = TYPES.iter().find(|(name, _)| *name == on);
    let Some((_, known)) = known else {
        return vec![format!("{on} is no type that the tests know")];
    };
    for selection in selections {
        match selection {
            Selection::On(narrower, inner) => faults.extend(selection_faults(narrower, inner)),
            Selection::Field(field) if field.name == "__typename" => {}
            Selection::Field(field) => match known.iter().find(|(name, _)| *name == field.name) {
                None => faults.push(format!("{on} has no field {}", field.name)),
                Some((_, kind)) => faults.extend(field_faults(on, kind, field)),
            },
        }
    }
    faults
}

fn field_faults(on: &str, kind: &str, field: &Field) -> Vec<String> {
    let mut faults = Vec::new();
    let name = &field.name;
    if kind.is_empty() != field.inner.is_empty() {
        faults.push(format!(
            "{on}.{name} has fields to select exactly if it is an object"
        ));
    }
    let arguments = ARGUMENTS
        .iter()
        .find(|entry| entry.0 == on && entry.1 == name);
    let known = arguments.map_or(&[][..], |entry| entry.2);
    for (argument, _) in field.arguments.as_object().into_iter().flatten() {
        if !known.contains(&argument.as_str()) {
            faults.push(format!("{on}.{name} has no argument {argument}"));
        }
    }
    let input = match name.as_str() {
        "createCommitOnBranch" => Some("CreateCommitOnBranchInput"),
        "resolveReviewThread" => Some("ResolveReviewThreadInput"),
        _ => None,
    };
    faults.extend(input.map_or_else(Vec::new, |kind| {
        input_faults(kind, &field.arguments["input"])
    }));
    if !kind.is_empty() {
        faults.extend(selection_faults(kind, &field.inner));
    }
    faults
}

fn input_faults(kind: &str, value: &Value) -> Vec<String> {
    if let Value::Array(values) = value {
        let faults = values.iter().flat_map(|value| input_faults(kind, value));
        return faults.collect();
    }
    let fields = INPUTS.iter().find(|(name, _)| *name == kind);
    let (Some((_, fields)), Value::Object(given)) = (fields, value) else {
        return vec![format!("{kind} is an object")];
    };
    let mut faults = Vec::new();
    for name in given.keys() {
        if !fields.iter().any(|(known, _, _)| known == name) {
            faults.push(format!("{kind} has no field {name}"));
        }
    }
    for (name, kind_of_field, required) in *fields {
        match given.get(*name) {
            None | Some(Value::Null) if *required => faults.push(format!("{kind} needs {name}")),
            None | Some(Value::Null) => {}
            Some(value) if kind_of_field.is_empty() && !value.is_string() => {
                faults.push(format!("{kind}.{name} is text"));
            }
            Some(_) if kind_of_field.is_empty() => {}
            Some(value) => faults.extend(input_faults(kind_of_field, value)),
        }
    }
    faults
}
