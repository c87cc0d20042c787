//! A request to an endpoint, and the ways to answer one.

use super::auth::Token;
use super::description::Parameters;
use super::state::State;
use serde_json::{Value, json};

/// A request that has passed the description and the permissions.
pub struct Call<'c> {
    pub state: &'c mut State,
    /// Who asks; none without a token.
    pub token: Option<&'c Token>,
    pub path: Parameters,
    pub query: Parameters,
    /// `null` without one.
    pub body: Value,
    /// The server's own base URL.
    pub base: &'c str,
    /// The path without its query.
    pub target: String,
}

/// An answer before the description completes it.
#[derive(Debug, Clone, PartialEq)]
pub struct Answer {
    pub status: u16,
    pub headers: Vec<(String, String)>,
    /// `null` for none.
    pub body: Value,
}

/// What became of a call: an answer, or a refusal that is one too.
pub type Handled = Result<Answer, Answer>;

impl Answer {
    /// An answer with this body.
    pub fn of(status: u16, body: Value) -> Self {
        Self {
            status,
            headers: Vec::new(),
            body,
        }
    }

    /// A refusal as GitHub words it.
    pub fn refusal(status: u16, message: &str) -> Self {
        let body = json!({
            "message": message,
            "documentation_url": "https://docs.github.com/rest",
            "status": status.to_string(),
        });
        Self::of(status, body)
    }

    /// A refusal of what a body says.
    pub fn invalid(errors: &[Value]) -> Self {
        let mut answer = Self::refusal(422, "Validation Failed");
        answer.body["errors"] = json!(errors);
        answer
    }

    /// There is no such thing, or the token may not know of it.
    pub fn not_found() -> Self {
        Self::refusal(404, "Not Found")
    }

    /// The same with one more header.
    #[must_use]
    pub fn with(mut self, name: &str, value: &str) -> Self {
        self.headers.push((name.to_owned(), value.to_owned()));
        self
    }
}

impl Call<'_> {
    /// A parameter of the path that is a number.
    pub fn number(&self, name: &str) -> Result<u64, Answer> {
        self.path[name].parse().map_err(|_| Answer::not_found())
    }

    /// Who asks.
    pub fn login(&self) -> String {
        self.token
            .map_or_else(String::new, |token| token.login.clone())
    }

    /// A string of the body.
    pub fn text(&self, name: &str) -> Option<String> {
        self.body[name].as_str().map(str::to_owned)
    }

    /// A parameter of the query.
    pub fn asked(&self, name: &str) -> Option<&str> {
        self.query.get(name).map(String::as_str)
    }

    /// The asked-for page of a list.
    pub fn page(&self, items: Vec<Value>) -> Answer {
        let (items, link) = self.cut(items);
        let mut answer = Answer::of(200, Value::Array(items));
        answer.headers.extend(link);
        answer
    }

    /// The asked-for page of a list that stands in an object beside its whole length.
    pub fn page_in(&self, key: &str, items: Vec<Value>) -> Answer {
        let total = items.len();
        let (items, link) = self.cut(items);
        let mut answer = Answer::of(200, json!({ "total_count": total, key: items }));
        answer.headers.extend(link);
        answer
    }

    fn cut(&self, items: Vec<Value>) -> (Vec<Value>, Option<(String, String)>) {
        let number = |name: &str, default: usize| {
            let given = self.asked(name).and_then(|text| text.parse().ok());
            given.filter(|number| *number >= 1).unwrap_or(default)
        };
        let (size, page) = (number("per_page", 30).min(100), number("page", 1));
        let last = items.len().div_ceil(size).max(1);
        let on_page = items.into_iter().skip((page - 1) * size).take(size);
        let link = |page: usize, relation: &str| {
            let mut query: Vec<String> = self
                .query
                .iter()
                .filter(|(name, _)| *name != "page")
                .map(|(name, value)| format!("{name}={value}"))
                .collect();
            query.push(format!("page={page}"));
            let (base, target) = (self.base, &self.target);
            format!("<{base}{target}?{}>; rel=\"{relation}\"", query.join("&"))
        };
        let mut links = Vec::new();
        if page > 1 {
            links.extend([link(page - 1, "prev"), link(1, "first")]);
        }
        if page < last {
            links.extend([link(page + 1, "next"), link(last, "last")]);
        }
        let header = (!links.is_empty()).then(|| ("link".to_owned(), links.join(", ")));
        (on_page.collect(), header)
    }
}

/// Replaces a text by what the body says, if it says anything.
pub fn take_text(target: &mut Option<String>, body: &Value, name: &str) {
    if let Some(text) = body[name].as_str() {
        *target = Some(text.to_owned());
    }
}
