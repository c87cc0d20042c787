//! Turns a review into tasks: one per thread, one per file, or one for the whole review.

use super::clean::{clean, clean_line};
use super::context::{self, Context, ReviewComment};
use super::triage::Candidate;
use crate::settings::ReviewThreads;
use serde::{Deserialize, Serialize};
use std::collections::BTreeSet;

const MAX_TITLE: usize = 72;

/// A task requested by a review.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ReviewTask {
    /// The same for the same thread, whatever was pushed since.
    pub id: String,
    /// A one-line title.
    pub title: String,
    /// The description for the agent.
    pub description: String,
    /// The first comments of the threads that it addresses.
    pub threads: Vec<u64>,
}

/// A thread of a review and the task that addresses it.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct ThreadOfTask {
    /// The id of its first comment.
    pub thread: u64,
    /// The task's id.
    pub task: String,
}

/// The tasks of a review in the order of its threads; the task for the review's own text comes last. An empty
/// text gives no task, and so a review without comments gives none at all.
pub fn tasks(candidate: &Candidate, context: &Context, by: ReviewThreads) -> Vec<ReviewTask> {
    let comments = &context.review_comments;
    let text = candidate.review_body.as_deref();
    let has_text = text.is_some_and(|text| !clean(text).trim().is_empty());
    if comments.is_empty() && !has_text && !context.review_unread {
        return Vec::new();
    }
    if by == ReviewThreads::All || comments.is_empty() {
        let threads: BTreeSet<u64> = comments.iter().map(ReviewComment::thread).collect();
        return vec![ReviewTask {
            id: "t1".to_owned(),
            title: match candidate.number() {
                Some(number) => format!("Do what the review of pull request {number} asks for"),
                None => "Do what the review asks for".to_owned(),
            },
            description: context::prompt(candidate, context),
            threads: threads.into_iter().collect(),
        }];
    }
    let mut groups: Vec<Vec<&ReviewComment>> = Vec::new();
    for comment in comments {
        let is_same = |group: &&mut Vec<&ReviewComment>| match by {
            ReviewThreads::File => group[0].place.path == comment.place.path,
            _ => group[0].thread() == comment.thread(),
        };
        match groups.iter_mut().find(is_same) {
            Some(group) => group.push(comment),
            None => groups.push(vec![comment]),
        }
    }
    let of_thread = Candidate {
        review_body: None,
        ..candidate.clone()
    };
    let tasks = groups
        .iter()
        .map(|group| task_of(&of_thread, context, group, by));
    let mut tasks: Vec<ReviewTask> = tasks.collect();
    if has_text {
        let of_text = Context {
            review_comments: Vec::new(),
            ..context.clone()
        };
        tasks.push(ReviewTask {
            id: "review".to_owned(),
            title: "Do what the text of the review asks for".to_owned(),
            description: format!(
                "{}\n\nThe comments of the review on lines are tasks of their own. Where its text asks for nothing \
                 else, change nothing and answer `ALREADY_SATISFIED: the text asks for nothing else`.",
                context::prompt(candidate, &of_text)
            ),
            threads: Vec::new(),
        });
    }
    tasks
}

fn task_of(
    candidate: &Candidate,
    context: &Context,
    group: &[&ReviewComment],
    by: ReviewThreads,
) -> ReviewTask {
    let own = Context {
        review_comments: group.iter().map(|comment| (*comment).clone()).collect(),
        ..context.clone()
    };
    let threads: BTreeSet<u64> = group.iter().map(|comment| comment.thread()).collect();
    let first = &group[0];
    let path = clean_line(&first.place.path, 200);
    let (kind, place) = match (by, first.place.line) {
        (ReviewThreads::File, _) => ("file", path),
        (_, Some(line)) => ("thread", format!("{path}:{line}")),
        (_, None) => ("thread", path),
    };
    let words = first_words(&first.body);
    let number = threads.iter().next().copied().unwrap_or_default();
    ReviewTask {
        id: format!("{kind}-{number}"),
        title: if words.is_empty() || kind == "file" {
            format!("Answer the review of {place}")
        } else {
            format!("{place}: {words}")
        },
        description: context::prompt(candidate, &own),
        threads: threads.into_iter().collect(),
    }
}

/// The first line that people see of a comment; empty if that is a fence, as of a suggested change.
fn first_words(body: &str) -> String {
    let body = clean(body);
    let first = body.lines().find(|line| !line.trim().is_empty());
    let is_text = |line: &&str| {
        let line = line.trim_start();
        !line.starts_with("```") && !line.starts_with("~~~")
    };
    clean_line(first.filter(is_text).unwrap_or_default(), MAX_TITLE)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::trigger::Request;
    use crate::trigger::payload::DiffLines;
    use crate::trigger::tests::{candidate, review_comment};

    fn comment(id: u64, reply_to: Option<u64>, path: &str, body: &str) -> ReviewComment {
        ReviewComment {
            id,
            reply_to,
            author: "grace".into(),
            place: DiffLines {
                path: path.into(),
                line: Some(3),
                hunk: "@@".into(),
            },
            body: body.into(),
        }
    }

    fn told(by: ReviewThreads, body: &str) -> Vec<(String, String, Vec<u64>)> {
        let candidate = Candidate {
            request: Request::Review { review_id: 9 },
            review_body: Some(body.to_owned()),
            ..candidate("pull_request_review_comment", &review_comment("/sprag x"))
        };
        let context = Context {
            review_comments: vec![
                comment(11, None, "a.rs", "One word"),
                comment(12, None, "b.rs", "Two"),
                comment(13, Some(11), "a.rs", "More of it"),
                comment(14, Some(5), "a.rs", "Again"),
            ],
            ..Context::default()
        };
        let tasks = tasks(&candidate, &context, by).into_iter();
        tasks
            .map(|task| (task.id, task.title, task.threads))
            .collect()
    }

    #[test]
    fn each_thread_is_a_task_and_an_empty_text_none() {
        let expected = [
            ("thread-11", "a.rs:3: One word", vec![11]),
            ("thread-12", "b.rs:3: Two", vec![12]),
            ("thread-5", "a.rs:3: Again", vec![5]),
        ]
        .map(|(id, title, of)| (id.to_owned(), title.to_owned(), of));
        assert_eq!(told(ReviewThreads::Each, " \n"), expected);
        assert_eq!(told(ReviewThreads::Each, "<!-- nothing -->\n"), expected);
        let with_text = told(ReviewThreads::Each, "Rename it all.");
        assert_eq!(with_text[..3], expected);
        assert_eq!(with_text[3].0, "review");
    }

    #[test]
    fn a_review_without_text_and_threads_asks_for_nothing() {
        let tasks_of = |body: Option<&str>, unread: bool| {
            let candidate = Candidate {
                request: Request::Review { review_id: 9 },
                review_body: body.map(str::to_owned),
                ..candidate("pull_request_review_comment", &review_comment("/sprag x"))
            };
            let context = Context {
                review_unread: unread,
                ..Context::default()
            };
            tasks(&candidate, &context, ReviewThreads::Each).len()
        };
        for body in [None, Some(""), Some(" \n"), Some("<!-- nothing -->")] {
            assert_eq!(tasks_of(body, false), 0, "{body:?}");
            assert_eq!(tasks_of(body, true), 1, "{body:?}");
        }
        assert_eq!(tasks_of(Some("Rename it all."), false), 1);
    }

    #[test]
    fn a_title_has_the_first_words_that_people_see() {
        for (body, words) in [
            ("One\nTwo", "One"),
            ("\n\n`a` is wrong", "`a` is wrong"),
            ("<!-- hidden\nlines -->\nSeen", "Seen"),
            ("<!-- hidden -->", ""),
            ("```suggestion\nnew\n```", ""),
        ] {
            assert_eq!(first_words(body), words, "{body:?}");
        }
    }

    #[test]
    fn the_threads_of_a_file_are_one_task_where_that_is_asked_for() {
        let files = told(ReviewThreads::File, "");
        let files: Vec<_> = files
            .iter()
            .map(|it| (it.0.as_str(), it.2.clone()))
            .collect();
        assert_eq!(files, [("file-5", vec![5, 11]), ("file-12", vec![12])]);
        let all = told(ReviewThreads::All, "Rename it all.");
        assert_eq!((all.len(), &*all[0].0, all[0].2.len()), (1, "t1", 3));
    }
}
