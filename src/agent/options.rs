//! The built-in agent's own arguments (`--agent-arg`).

use super::models::Price;
use crate::session::Limits;

/// The parsed arguments.
#[derive(Debug, Clone, Default, PartialEq)]
pub struct Options {
    /// Maximum number of model responses.
    pub max_steps: Option<u32>,
    /// Maximum number of tool calls.
    pub max_tool_calls: Option<u32>,
    /// The model's context window, in tokens.
    pub context_window: Option<usize>,
    /// The longest response, in tokens.
    pub max_output_tokens: Option<usize>,
    /// Whether complete responses are requested instead of streams.
    pub no_stream: bool,
    /// Whether the turn is to end with words alone. No argument sets this.
    pub answers: bool,
    /// The price of the model.
    pub price: Option<Price>,
}

const KNOWN: &str = "--max-steps N, --max-tool-calls N, --context-window TOKENS, \
                     --max-output-tokens TOKENS, --price IN,CACHED,OUT[,WRITTEN], --no-stream";

impl Options {
    /// Parses the arguments `--name value` and `--name=value`.
    ///
    /// # Errors
    /// An unknown or invalid argument, as a lowercase fragment.
    pub fn read(args: &[String]) -> Result<Self, String> {
        let mut options = Self::default();
        let mut args = args.iter();
        while let Some(arg) = args.next() {
            let (name, mut value) = match arg.split_once('=') {
                Some((name, value)) => (name, Some(value)),
                None => (arg.as_str(), None),
            };
            let mut value = || {
                let given = value.take().or_else(|| args.next().map(String::as_str));
                given.ok_or_else(|| format!("{name} needs a value"))
            };
            match name {
                "--no-stream" => options.no_stream = true,
                "--max-steps" => options.max_steps = Some(number(name, value()?)?),
                "--max-tool-calls" => options.max_tool_calls = Some(number(name, value()?)?),
                "--context-window" => options.context_window = Some(number(name, value()?)?),
                "--max-output-tokens" => options.max_output_tokens = Some(number(name, value()?)?),
                "--price" => options.price = Some(price(value()?)?),
                _ => {
                    return Err(format!(
                        "the built-in agent has no argument `{arg}`; it has {KNOWN}"
                    ));
                }
            }
        }
        Ok(options)
    }

    /// The limits of a session.
    pub fn limits(&self) -> Limits {
        let own = Limits::default();
        Limits {
            steps: self.max_steps.unwrap_or(own.steps),
            tool_calls: self.max_tool_calls.unwrap_or(own.tool_calls),
            words_suffice: self.answers,
            ..own
        }
    }
}

fn number<N: TryFrom<u64>>(name: &str, text: &str) -> Result<N, String> {
    let read = text.parse::<u64>().ok().filter(|number| *number > 0);
    read.and_then(|number| N::try_from(number).ok())
        .ok_or_else(|| format!("{name} needs a whole number from 1, not `{text}`"))
}

fn price(text: &str) -> Result<Price, String> {
    let parts: Result<Vec<f64>, _> = text.split(',').map(|part| part.trim().parse()).collect();
    match parts.as_deref() {
        Ok(&[input, cached, output, ref written @ ..])
            if written.len() <= 1 && parts.iter().flatten().all(|price| *price >= 0.0) =>
        {
            Ok(Price {
                input,
                cached,
                written: written.first().copied().unwrap_or(input),
                output,
            })
        }
        _ => Err(format!(
            "--price needs three or four prices for a million tokens, like 3,0.3,15, not `{text}`"
        )),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn read(args: &[&str]) -> Result<Options, String> {
        let args: Vec<String> = args.iter().map(ToString::to_string).collect();
        Options::read(&args)
    }

    #[test]
    fn arguments_are_read_in_both_forms() {
        let options = read(&[
            "--max-steps",
            "5",
            "--max-tool-calls=7",
            "--context-window",
            "8000",
            "--max-output-tokens=100",
            "--price",
            "3,0.3,15",
            "--no-stream",
        ]);
        let price = Price {
            input: 3.0,
            cached: 0.3,
            written: 3.0,
            output: 15.0,
        };
        let expected = Options {
            max_steps: Some(5),
            max_tool_calls: Some(7),
            context_window: Some(8_000),
            max_output_tokens: Some(100),
            no_stream: true,
            answers: false,
            price: Some(price),
        };
        assert_eq!(options, Ok(expected));
    }

    #[test]
    fn a_fourth_price_is_that_of_what_is_written_to_a_cache() {
        let price = read(&["--price=3,0.3,15,3.75"]).unwrap().price;
        assert_eq!(price.map(|price| price.written), Some(3.75));
    }

    #[test]
    fn what_cannot_be_read_is_said() {
        for (args, why) in [
            (&["--max-steps"] as &[&str], "--max-steps needs a value"),
            (
                &["--max-steps", "0"],
                "needs a whole number from 1, not `0`",
            ),
            (&["--max-steps=99999999999"], "needs a whole number"),
            (&["--price", "1,2"], "needs three or four prices"),
            (&["--price", "1,NaN,2"], "needs three or four prices"),
            (&["--price", "1,1,2,-1"], "needs three or four prices"),
            (&["--price", "1,1,2,1,1"], "needs three or four prices"),
            (&["--text-tools"], "has no argument `--text-tools`"),
            (&["-v"], "has no argument `-v`"),
        ] {
            let error = read(args).unwrap_err();
            assert!(error.contains(why), "{error}");
        }
    }
}
