//! The closed sets of words that settings accept.

use super::kind::Words;
use crate::sandbox::Level;

macro_rules! choice {
    ($(#[doc = $help:literal])+ $name:ident { $(#[doc = $variant_help:literal] $variant:ident = $word:literal,)+ }) => {
        $(#[doc = $help])+
        #[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, serde::Serialize, serde::Deserialize)]
        pub enum $name {
            $(#[doc = $variant_help] #[serde(rename = $word)] $variant,)+
        }

        impl Words for $name {
            const WORDS: &'static [(&'static str, Self)] = &[$(($word, Self::$variant),)+];
        }
    };
}

choice! {
    /// What becomes of commits that the agent makes itself.
    AgentCommits {
        /// They are kept where each is what Sprag could have made, and the rest is committed on top.
        Accept = "accept",
        /// They become one commit with the rest, made by Sprag.
        Squash = "squash",
        /// They are a policy violation.
        Reject = "reject",
    }
}
choice! {
    /// What something that was found means for the task.
    OnFinding {
        /// The task fails.
        Fail = "fail",
        /// A warning.
        Warn = "warn",
        /// Nothing is said.
        Ok = "ok",
    }
}

impl Default for OnFinding {
    /// The strictest choice.
    fn default() -> Self {
        Self::Fail
    }
}
choice! {
    /// What the check run of a review alone concludes where something has to be fixed.
    ReviewFindings {
        /// Neither success nor failure: a person decides.
        Neutral = "neutral",
        /// Failure.
        Fail = "fail",
    }
}
choice! {
    /// What becomes of a task that changes protected paths.
    OnProtected {
        /// It is blocked, with all of its work.
        Block = "block",
        /// These changes are taken out and kept as a patch, and the rest goes on.
        Hold = "hold",
    }
}
choice! {
    /// Where the files of the repository that configure an agent come from.
    AgentConfig {
        /// The tip of the base branch.
        Base = "base",
        /// The tree that is worked on.
        Head = "head",
        /// Nowhere: they are left out.
        None = "none",
    }
}
choice! {
    /// When the tree on which a task starts is checked.
    Baseline {
        /// When the first verification of the task fails.
        OnFailure = "on-failure",
        /// Before the task's first turn.
        First = "first",
        /// Never.
        Off = "off",
    }
}
choice! {
    /// What becomes of work that fails only what failed before the task.
    KnownFailures {
        /// It fails.
        Fail = "fail",
        /// It is committed, and the tests are named.
        Tolerate = "tolerate",
    }
}
choice! {
    /// What becomes of work that changes tests or check definitions which were there before.
    TestChangePolicy {
        /// It has to pass with the old ones too; else it is committed, but not called verified.
        Prove = "prove",
        /// It has to pass with the old ones too; else it is not committed.
        Fail = "fail",
        /// A warning names them.
        Warn = "warn",
        /// Nothing is said.
        Ok = "ok",
    }
}
choice! {
    /// Whether new tests have to fail without the work.
    ProveNewTests {
        /// It is not asked.
        Off = "off",
        /// A warning names those that do not.
        Warn = "warn",
        /// The task fails where they do not.
        Require = "require",
    }
}
choice! {
    /// What becomes of a task without any check.
    IfUnverified {
        /// It is committed and ends `unverified`.
        Accept = "accept",
        /// It fails.
        Fail = "fail",
    }
}
choice! {
    /// Whether a pull request is opened.
    PullRequest {
        /// No.
        None = "none",
        /// As a draft.
        Draft = "draft",
        /// Ready for review.
        Ready = "ready",
    }
}
choice! {
    /// How commits reach the remote.
    CommitVia {
        /// By a push.
        Git = "git",
        /// By GitHub's API, which signs them.
        Api = "api",
    }
}
choice! {
    /// Where the result is reported.
    Report {
        /// To GitHub when the run is there and the token can.
        Auto = "auto",
        /// To GitHub.
        Github = "github",
        /// Nowhere but in the log and the run directory.
        None = "none",
    }
}
choice! {
    /// How far children are confined.
    Sandbox {
        /// As far as the machine allows, and only where programs do not notice it.
        Auto = "auto",
        /// To the highest level.
        Require = "require",
        /// At least to the first level.
        RequireOne = "require:1",
        /// At least to the second level.
        RequireTwo = "require:2",
        /// At least to the third level.
        RequireThree = "require:3",
        /// Not at all.
        Off = "off",
    }
}

choice! {
    /// Whether the keys of model providers stay with Sprag.
    Gateway {
        /// Where the gateway can stand in for the key.
        Auto = "auto",
        /// Nothing is started where it cannot.
        On = "on",
        /// Agents get their keys.
        Off = "off",
    }
}

impl Sandbox {
    /// The minimum level without which nothing starts, if there is one.
    pub fn required(self) -> Option<Level> {
        match self {
            Self::Auto | Self::Off => None,
            Self::RequireOne => Some(Level::Privileges),
            Self::RequireTwo => Some(Level::Files),
            Self::Require | Self::RequireThree => Some(Level::Namespaces),
        }
    }

    /// The word for the setting.
    pub fn word(self) -> &'static str {
        let mut words = Self::WORDS.iter();
        let own = words.find(|(_, value)| *value == self);
        own.map_or("", |(word, _)| word)
    }
}
choice! {
    /// How the threads of a review become tasks.
    ReviewThreads {
        /// One for each thread.
        Each = "each",
        /// One for the threads of each file.
        File = "file",
        /// One for all of the review.
        All = "all",
    }
}
choice! {
    /// Whether the log is coloured.
    Color {
        /// Where the log can show it.
        Auto = "auto",
        /// Always.
        Always = "always",
        /// Never.
        Never = "never",
    }
}

impl TestChangePolicy {
    /// Whether the old tests also run on the work.
    pub fn is_proved(self) -> bool {
        matches!(self, Self::Prove | Self::Fail)
    }
}
