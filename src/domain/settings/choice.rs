//! The closed sets of words that settings accept.

use crate::sandbox::Level;

macro_rules! choice {
    ($(#[doc = $help:literal])+ $(#[derive($($more:path),+)])? $name:ident {
        $(#[doc = $variant_help:literal] $(#[$mark:ident])? $variant:ident = $word:literal,)+
    }) => {
        $(#[doc = $help])+
        #[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, serde::Serialize, serde::Deserialize)]
        $(#[derive($($more),+)])?
        pub enum $name {
            $(#[doc = $variant_help] $(#[$mark])? #[serde(rename = $word)] $variant,)+
        }

        impl $name {
            /// Every value.
            pub const ALL: &'static [Self] = &[$(Self::$variant),+];

            /// The word of the value, in files and in reports.
            pub fn word(self) -> &'static str {
                match self {
                    $(Self::$variant => $word,)+
                }
            }
        }

        impl $crate::settings::kind::Words for $name {
            const WORDS: &'static [(&'static str, Self)] = &[$(($word, Self::$variant),)+];
        }
    };
}
pub(crate) use choice;

choice! {
    /// How commits that the agent makes itself are treated.
    AgentCommits {
        /// They are kept if each is one that Sprag could have made; the rest is committed on top.
        Accept = "accept",
        /// They become one commit with the rest, made by Sprag.
        Squash = "squash",
        /// They are a policy violation.
        Reject = "reject",
    }
}
choice! {
    /// The consequence of a finding for the task.
    #[derive(Default)]
    OnFinding {
        /// The task fails.
        #[default]
        Fail = "fail",
        /// A warning.
        Warn = "warn",
        /// No message.
        Ok = "ok",
    }
}
choice! {
    /// The conclusion of the check run of a review-only run with findings to fix.
    ReviewFindings {
        /// Neither success nor failure: a person decides.
        Neutral = "neutral",
        /// Failure.
        Fail = "fail",
    }
}
choice! {
    /// How a task that changes protected paths is treated.
    OnProtected {
        /// It is blocked, with all of its work.
        Block = "block",
        /// These changes are removed and kept as a patch; the task continues with the rest.
        Hold = "hold",
    }
}
choice! {
    /// The source of the repository's files that configure an agent.
    AgentConfig {
        /// The tip of the base branch.
        Base = "base",
        /// The tree of the work.
        Head = "head",
        /// None: the files are removed.
        None = "none",
    }
}
choice! {
    /// When the checks run on the tree on which a task starts.
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
    /// How work whose only failures existed before the task is treated.
    KnownFailures {
        /// It fails.
        Fail = "fail",
        /// It is committed as unverified, and the tests are named.
        Tolerate = "tolerate",
    }
}
choice! {
    /// How work that changes what judges it is treated.
    TestChangePolicy {
        /// It must also pass with the old ones; otherwise it is committed, but not called verified.
        Prove = "prove",
        /// It must also pass with the old ones; otherwise it is not committed.
        Fail = "fail",
        /// A warning names them.
        Warn = "warn",
        /// No message.
        Ok = "ok",
    }
}
choice! {
    /// What happens with signals: lines of work that passes its checks, which are worth a look.
    SignalPolicy {
        /// Every report names them.
        Report = "report",
        /// Work that has some is not committed.
        Fail = "fail",
        /// Nothing looks for them.
        Off = "off",
    }
}
choice! {
    /// Whether new tests must fail without the work.
    ProveNewTests {
        /// Not required.
        Off = "off",
        /// A warning names new tests that pass without the work.
        Warn = "warn",
        /// The task fails if a new test passes without the work.
        Require = "require",
    }
}
choice! {
    /// How a task without any check is treated.
    IfUnverified {
        /// It is committed and ends `unverified`.
        Accept = "accept",
        /// It fails.
        Fail = "fail",
    }
}
choice! {
    /// Whether a plan must be approved before work on a labelled issue starts.
    Approve {
        /// The work starts at once.
        Off = "off",
        /// A plan is drafted and shown, and `approve` starts the work.
        Required = "required",
    }
}
choice! {
    /// Whether a pull request is opened.
    #[derive(Default)]
    PullRequest {
        /// No.
        #[default]
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
        /// To GitHub if the run is a job there and its token permits it.
        Auto = "auto",
        /// To GitHub.
        Github = "github",
        /// Only in the log, the step summary and the run directory.
        None = "none",
    }
}
choice! {
    /// How far children are confined.
    Sandbox {
        /// As far as the machine allows without affecting ordinary programs.
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
    /// Whose caches agents write.
    Caches {
        /// Copies, which only the agents of the run see.
        Private = "private",
        /// The user's, as checks do.
        Shared = "shared",
    }
}

choice! {
    /// Whether the keys of model providers stay with Sprag.
    Gateway {
        /// If the gateway can replace the key.
        Auto = "auto",
        /// Always; nothing is started if the gateway cannot replace the key.
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
}
choice! {
    /// How the threads of a review become tasks.
    ReviewThreads {
        /// One for each thread.
        Each = "each",
        /// One for the threads of each file.
        File = "file",
        /// One for the whole review.
        All = "all",
    }
}
choice! {
    /// Whether the log is coloured.
    Color {
        /// If the log can show colours.
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
