//! The name of a run on GitHub. It separates the check runs and comments of several workflows and jobs that
//! work on the same pull request.

use super::clean::clean_line;
use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use serde::{Deserialize, Serialize};

/// The beginning of a comment by Sprag, in any version.
pub const MARKER: &str = "<!-- sprag:state ";

const PROGRAM: &str = "Sprag";
const MAX_PART: usize = 80;

/// `Sprag / WORKFLOW / JOB`, or `Sprag / NAME` if a name was given. It is the name of the check runs, and
/// part of the first line of the comment.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(transparent)]
pub struct RunName(String);

impl RunName {
    /// The name of the runs of a job.
    pub fn of_job(workflow: Option<&str>, job: Option<&str>) -> Self {
        Self::joined(workflow.into_iter().chain(job))
    }

    /// The name that the user chose.
    pub fn chosen(name: &str) -> Self {
        Self::joined(std::iter::once(name))
    }

    fn joined<'a>(parts: impl Iterator<Item = &'a str>) -> Self {
        let mut name = PROGRAM.to_owned();
        for part in parts.map(|part| clean_line(part, MAX_PART)) {
            if !part.is_empty() {
                name.push_str(" / ");
                name.push_str(&part);
            }
        }
        Self(name)
    }

    /// The name that another job gave its run, if that is a job of this workflow. Any other name is rejected,
    /// because it could be the name of another workflow's comment.
    pub fn of_other_job(workflow: &str, told: &str) -> Option<Self> {
        let (_, job) = told.rsplit_once(" / ")?;
        let is_id = |c: char| c.is_ascii_alphanumeric() || matches!(c, '-' | '_');
        let name = Self::of_job(Some(workflow), Some(job));
        (!job.is_empty() && job.chars().all(is_id) && name.0 == told).then_some(name)
    }

    /// The name's text.
    pub fn as_str(&self) -> &str {
        &self.0
    }

    /// The beginning of the first line of the comment for runs with this name.
    pub fn marker(&self) -> String {
        // Base64 contains neither `--` nor `>`, so no name can end the HTML comment.
        format!("{MARKER}v2 {} ", STANDARD.encode(&self.0))
    }

    /// The beginning of a reply with this name to a review thread, which identifies the review that it
    /// answers.
    pub fn thread_marker(&self, review: u64) -> String {
        format!(
            "<!-- sprag:thread v1 {} {review} -->",
            STANDARD.encode(&self.0)
        )
    }

    /// The beginning of a review with this name that a run posted.
    pub fn review_marker(&self, run_id: &str) -> String {
        let run = STANDARD.encode(run_id);
        format!(
            "<!-- sprag:review v1 {} {run} -->",
            STANDARD.encode(&self.0)
        )
    }

    /// The line in a review or its comments that identifies a reported finding. `digest` consists of letters
    /// and digits.
    pub fn finding_marker(&self, digest: &str) -> String {
        format!("{}{digest} -->", self.start_of_finding_markers())
    }

    /// The prefix of every such line with this name.
    pub fn start_of_finding_markers(&self) -> String {
        format!("<!-- sprag:finding v1 {} ", STANDARD.encode(&self.0))
    }
}

impl Default for RunName {
    fn default() -> Self {
        Self(PROGRAM.to_owned())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_name_says_workflow_and_job_or_what_was_chosen() {
        let of = |workflow, job| RunName::of_job(workflow, job).0;
        assert_eq!(of(Some("CI"), Some("fix")), "Sprag / CI / fix");
        assert_eq!(of(Some("CI"), None), "Sprag / CI");
        assert_eq!(of(None, None), RunName::default().0);
        assert_eq!(RunName::chosen("docs").0, "Sprag / docs");
        let long = RunName::chosen(&"é\n".repeat(500)).0;
        assert!(long.len() < 400 && !long.contains('\n'), "{long}");
    }

    #[test]
    fn no_marker_is_the_beginning_of_another_ones() {
        let names = ["a", "ab", "a / b", "--> x", ""].map(RunName::chosen);
        for (at, one) in names.iter().enumerate() {
            for (other_at, other) in names.iter().enumerate() {
                let begins = other.marker().starts_with(&one.marker());
                assert_eq!(begins, at == other_at, "{one:?} {other:?}");
            }
            assert!(!one.marker().contains("-->"));
        }
    }

    #[test]
    fn another_job_names_a_job_of_the_same_workflow_only() {
        let of = |told| RunName::of_other_job("CI", told);
        assert_eq!(of("Sprag / CI / work").unwrap().0, "Sprag / CI / work");
        for strange in [
            "Sprag / Other / work",
            "Sprag / CI / ",
            "Sprag / CI",
            "Sprag / CI / a b",
            "Sprag / CI / x / work",
            "work",
        ] {
            assert_eq!(of(strange), None, "{strange}");
        }
    }
}
