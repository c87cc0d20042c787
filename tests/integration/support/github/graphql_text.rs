//! GraphQL's query language, as far as the tests need it: one operation, arguments, variables,
//! aliases and inline fragments.

use serde_json::{Map, Value, json};

/// A selected field.
#[derive(Debug)]
pub struct Field {
    pub alias: String,
    pub name: String,
    /// With the variables' values in place.
    pub arguments: Value,
    pub inner: Vec<Selection>,
}

/// What stands in braces.
#[derive(Debug)]
pub enum Selection {
    Field(Field),
    /// `... on TYPE { … }`
    On(String, Vec<Selection>),
}

/// The root type (`Query` or `Mutation`) and the selections of a query.
pub fn parse(text: &str, variables: &Value) -> Result<(&'static str, Vec<Selection>), String> {
    let mut parser = Parser {
        tokens: tokens(text)?,
        next: 0,
        declared: Vec::new(),
        used: Vec::new(),
        variables,
    };
    let root = parser.operation()?;
    let selections = parser.selections()?;
    if parser.next < parser.tokens.len() {
        return Err(format!("{:?} after the end", parser.tokens[parser.next]));
    }
    let given = variables.as_object().into_iter().flatten();
    for (name, _) in given {
        if !parser.declared.contains(name) {
            return Err(format!("the variable {name} is not declared"));
        }
    }
    match parser
        .declared
        .iter()
        .find(|name| !parser.used.contains(name))
    {
        Some(unused) => Err(format!("the variable {unused} is declared and never used")),
        None => Ok((root, selections)),
    }
}

struct Parser<'t> {
    tokens: Vec<String>,
    next: usize,
    declared: Vec<String>,
    used: Vec<String>,
    variables: &'t Value,
}

impl Parser<'_> {
    fn peek(&self) -> &str {
        self.tokens.get(self.next).map_or("", String::as_str)
    }

    fn take(&mut self) -> String {
        let token = self.peek().to_owned();
        self.next += 1;
        token
    }

    fn eat(&mut self, token: &str) -> bool {
        let there = self.peek() == token;
        self.next += usize::from(there);
        there
    }

    fn expect(&mut self, token: &str) -> Result<(), String> {
        let found = self.peek().to_owned();
        let there = self.eat(token);
        there
            .then_some(())
            .ok_or_else(|| format!("{token:?} expected, {found:?} found"))
    }

    fn name(&mut self) -> Result<String, String> {
        let token = self.take();
        let is_name = token.starts_with(|c: char| c.is_ascii_alphabetic() || c == '_');
        is_name
            .then_some(token.clone())
            .ok_or_else(|| format!("a name expected, {token:?} found"))
    }

    /// The head of the operation, up to its selections.
    fn operation(&mut self) -> Result<&'static str, String> {
        let root = match self.peek() {
            "{" => return Ok("Query"),
            "query" => "Query",
            "mutation" => "Mutation",
            other => return Err(format!("an operation expected, {other:?} found")),
        };
        self.next += 1;
        if self.peek() != "{" && self.peek() != "(" {
            self.name()?;
        }
        if self.eat("(") {
            while !self.eat(")") {
                self.expect("$")?;
                let name = self.name()?;
                self.declared.push(name.clone());
                self.expect(":")?;
                let required = self.variable_type()?;
                if required && self.variables[&name].is_null() {
                    return Err(format!("the variable {name} has no value"));
                }
            }
        }
        Ok(root)
    }

    /// Reads the type of a variable and returns whether it has to have a value.
    fn variable_type(&mut self) -> Result<bool, String> {
        if self.eat("[") {
            self.variable_type()?;
            self.expect("]")?;
        } else {
            self.name()?;
        }
        Ok(self.eat("!"))
    }

    fn selections(&mut self) -> Result<Vec<Selection>, String> {
        self.expect("{")?;
        let mut selections = Vec::new();
        while !self.eat("}") {
            selections.push(self.selection()?);
        }
        if selections.is_empty() {
            return Err("nothing is selected".to_owned());
        }
        Ok(selections)
    }

    fn selection(&mut self) -> Result<Selection, String> {
        if self.eat("...") {
            self.expect("on")?;
            return Ok(Selection::On(self.name()?, self.selections()?));
        }
        let alias = self.name()?;
        let name = if self.eat(":") {
            self.name()?
        } else {
            alias.clone()
        };
        let arguments = if self.eat("(") {
            self.fields(")")?
        } else {
            Value::Null
        };
        let inner = if self.peek() == "{" {
            self.selections()?
        } else {
            Vec::new()
        };
        Ok(Selection::Field(Field {
            alias,
            name,
            arguments: if arguments.is_null() {
                json!({})
            } else {
                arguments
            },
            inner,
        }))
    }

    fn fields(&mut self, end: &str) -> Result<Value, String> {
        let mut fields = Map::new();
        while !self.eat(end) {
            let name = self.name()?;
            self.expect(":")?;
            fields.insert(name, self.value()?);
        }
        Ok(Value::Object(fields))
    }

    fn value(&mut self) -> Result<Value, String> {
        if self.eat("$") {
            let name = self.name()?;
            if !self.declared.contains(&name) {
                return Err(format!("the variable {name} is not declared"));
            }
            self.used.push(name.clone());
            return Ok(self.variables[&name].clone());
        }
        if self.eat("{") {
            return self.fields("}");
        }
        if self.eat("[") {
            let mut values = Vec::new();
            while !self.eat("]") {
                values.push(self.value()?);
            }
            return Ok(Value::Array(values));
        }
        let token = self.take();
        // Numbers, text and the words `true`, `false` and `null` are JSON; the rest are enum values.
        Ok(serde_json::from_str(&token).unwrap_or_else(|_| json!(token)))
    }
}

fn tokens(text: &str) -> Result<Vec<String>, String> {
    let mut tokens = Vec::new();
    let mut rest = text.trim_start_matches(ignored);
    while let Some(first) = rest.chars().next() {
        let word = |c: char| c.is_ascii_alphanumeric() || c == '_' || c == '-';
        let length = match first {
            '"' => 1 + end_of_text(&rest[1..]).ok_or("text without an end")?,
            '.' if rest.starts_with("...") => 3,
            '#' => rest.find('\n').unwrap_or(rest.len()),
            _ if word(first) => rest.find(|c| !word(c)).unwrap_or(rest.len()),
            _ if "{}()[]:!$=@|&".contains(first) => 1,
            _ => return Err(format!("{first:?} is no token")),
        };
        if first != '#' {
            tokens.push(rest[..length].to_owned());
        }
        rest = rest[length..].trim_start_matches(ignored);
    }
    Ok(tokens)
}

fn ignored(c: char) -> bool {
    c.is_whitespace() || c == ','
}

/// The length of text up to its closing quote, that included.
fn end_of_text(text: &str) -> Option<usize> {
    let mut escaped = false;
    let found = text.bytes().position(|byte| {
        let end = byte == b'"' && !escaped;
        escaped = byte == b'\\' && !escaped;
        end
    });
    found.map(|at| at + 1)
}
