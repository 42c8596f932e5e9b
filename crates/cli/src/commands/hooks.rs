//! `doorstep hooks`.

use clap::Subcommand;
use client::{PageRequest, PrincipalId, QueueName};
use protocol::{AttemptResult, CallbackUrl, HookAttempt, NewNotifyHook, NotifyHook, Secret};

use super::{cell, when, words, yes_no};
use crate::failure::Failure;
use crate::session::Session;

/// Notify hooks: URLs that are called, signed, when an item of the agent becomes claimable.
#[derive(Clone, Debug, Subcommand)]
pub enum HooksCommand {
    /// Register a URL. Its secret is printed this once.
    #[command(after_help = "Examples:\n  doorstep hooks add https://agent-alpha.example.net/doorstep > hook.secret\n  \
                            doorstep hooks add https://ci.example.net/start --queue builds --ignore-presence > hook.secret")]
    Add {
        /// What is called.
        #[arg(value_name = "URL", value_parser = url)]
        target: CallbackUrl,
        /// Only for items of this queue; may be repeated. All queues when absent.
        #[arg(long = "queue", short, value_name = "QUEUE")]
        queues: Vec<QueueName>,
        /// Also while the agent is out.
        #[arg(long)]
        ignore_presence: bool,
        /// This agent; the token's own when absent. For operators.
        #[arg(long, value_name = "ID")]
        agent: Option<PrincipalId>,
    },
    /// List hooks and how they do, without secrets.
    #[command(after_help = "Example:\n  doorstep hooks ls")]
    Ls {
        /// Of this agent; the token's own when absent. For operators.
        #[arg(long, value_name = "ID")]
        agent: Option<PrincipalId>,
    },
    /// Give a hook another secret, which is printed this once. For a while the one before signs, too.
    #[command(after_help = "Example:\n  doorstep hooks rotate 0197f0ab-9e45-7f99-8b62-af4c8ebf6f55 > next.secret")]
    Rotate {
        /// The hook.
        #[arg(value_parser = name)]
        hook: String,
    },
    /// Ring a disabled hook again.
    #[command(after_help = "Example:\n  doorstep hooks enable 0197f0ab-9e45-7f99-8b62-af4c8ebf6f55")]
    Enable {
        /// The hook.
        #[arg(value_parser = name)]
        hook: String,
    },
    /// Stop ringing a hook. The inbox fills all the same.
    #[command(after_help = "Example:\n  doorstep hooks disable 0197f0ab-9e45-7f99-8b62-af4c8ebf6f55")]
    Disable {
        /// The hook.
        #[arg(value_parser = name)]
        hook: String,
    },
    /// Delete a hook.
    #[command(after_help = "Example:\n  doorstep hooks rm 0197f0ab-9e45-7f99-8b62-af4c8ebf6f55")]
    Rm {
        /// The hook.
        #[arg(value_parser = name)]
        hook: String,
    },
    /// Ring a hook once, and say what came of it. Fails when the ring was not delivered.
    #[command(after_help = "Example:\n  doorstep hooks test 0197f0ab-9e45-7f99-8b62-af4c8ebf6f55")]
    Test {
        /// The hook.
        #[arg(value_parser = name)]
        hook: String,
    },
    /// The last attempts to ring a hook.
    #[command(after_help = "Example:\n  doorstep hooks log 0197f0ab-9e45-7f99-8b62-af4c8ebf6f55")]
    Log {
        /// The hook.
        #[arg(value_parser = name)]
        hook: String,
    },
}

#[expect(clippy::unnecessary_wraps, reason = "the signature of a value parser")]
fn url(text: &str) -> Result<CallbackUrl, std::convert::Infallible> {
    Ok(CallbackUrl::new(text.to_owned()))
}

fn name(text: &str) -> Result<String, &'static str> {
    let is_plain = (1..=64).contains(&text.len()) && text.bytes().all(|byte| byte.is_ascii_alphanumeric() || matches!(byte, b'_' | b'-'));
    if is_plain { Ok(text.to_owned()) } else { Err("a hook's id, as `doorstep hooks ls` shows it") }
}

/// Runs `doorstep hooks`.
pub(crate) async fn run(command: HooksCommand, session: &Session) -> Result<(), Failure> {
    let client = &session.client()?;
    match command {
        HooksCommand::Add { target, queues, ignore_presence, agent } => {
            let queues = (!queues.is_empty()).then_some(queues);
            let new = NewNotifyHook { agent, url: target, queues, ignore_presence: ignore_presence.then_some(true) };
            let created = client.create_notify_hook(&new).await?;
            if session.options.json {
                return session.json(&created);
            }
            let hook = &created.hook;
            session.note(&format!("hook {} of {}, {}; its secret is shown this once", hook.id, hook.agent, hook.state));
            show_secret(session, created.secret.as_ref())
        }
        HooksCommand::Ls { agent } => {
            let agent = agent.as_ref();
            let hooks = client.all_pages(|page: PageRequest| async move { client.notify_hooks(agent, &page).await }).await?;
            session.list(&["HOOK", "AGENT", "STATE", "FAILED", "LAST", "AT", "QUEUES", "WHILE OUT", "URL"], &hooks, row)
        }
        HooksCommand::Rotate { hook } => {
            let rotated = client.rotate_notify_hook(&hook).await?;
            if session.options.json {
                return session.json(&rotated);
            }
            session.note(&format!("hook {hook} has a new secret, shown this once; the one before signs until {}", rotated.previous_until));
            show_secret(session, Some(&rotated.secret))
        }
        HooksCommand::Enable { hook } => show(session, &client.enable_notify_hook(&hook).await?),
        HooksCommand::Disable { hook } => show(session, &client.disable_notify_hook(&hook).await?),
        HooksCommand::Rm { hook } => {
            client.delete_notify_hook(&hook).await?;
            session.done("deleted", &hook)
        }
        HooksCommand::Test { hook } => {
            let attempt = client.test_notify_hook(&hook).await?;
            show_attempt(session, &attempt)?;
            if attempt.result.known() == Some(AttemptResult::Delivered) {
                return Ok(());
            }
            Err(Failure::Failed(format!("the ring was not delivered: {}", attempt.result)))
        }
        HooksCommand::Log { hook } => {
            let attempts = client.notify_hook_deliveries(&hook).await?.items;
            session.list(&["AT", "RESULT", "STATUS", "MS", "ATTEMPT", "REASON", "EVENT", "RING"], &attempts, |attempt: &HookAttempt| {
                vec![
                    when(attempt.at),
                    attempt.result.to_string(),
                    cell(attempt.status.as_ref()),
                    attempt.latency_ms.to_string(),
                    attempt.attempt.to_string(),
                    attempt.reason.to_string(),
                    cell(attempt.event_id.as_ref()),
                    attempt.webhook_id.clone(),
                ]
            })
        }
    }
}

/// The secret alone goes to standard output, ready to be kept in a file.
fn show_secret(session: &Session, secret: Option<&Secret>) -> Result<(), Failure> {
    match secret {
        Some(secret) => session.line(secret.expose()),
        None => Err(Failure::Failed("the server has not sent the secret".to_owned())),
    }
}

/// A state with its cause.
fn state(hook: &NotifyHook) -> String {
    match &hook.disabled_cause {
        Some(cause) => format!("{} ({cause})", hook.state),
        None => hook.state.to_string(),
    }
}

fn row(hook: &NotifyHook) -> Vec<String> {
    vec![
        hook.id.clone(),
        hook.agent.to_string(),
        state(hook),
        hook.health.consecutive_failures.to_string(),
        cell(hook.health.last_status.as_ref()),
        hook.health.last_attempt_at.map(when).unwrap_or_default(),
        words(&hook.queues),
        yes_no(hook.ignore_presence),
        hook.url.expose().to_owned(),
    ]
}

fn show(session: &Session, hook: &NotifyHook) -> Result<(), Failure> {
    let members = [
        ("hook", hook.id.clone()),
        ("agent", hook.agent.to_string()),
        ("url", hook.url.expose().to_owned()),
        ("queues", words(&hook.queues)),
        ("while out", yes_no(hook.ignore_presence)),
        ("state", state(hook)),
        ("failed", hook.health.consecutive_failures.to_string()),
        ("last status", cell(hook.health.last_status.as_ref())),
        ("last attempt", hook.health.last_attempt_at.map(when).unwrap_or_default()),
        ("created", when(hook.created_at)),
    ];
    session.item(hook, &members)
}

fn show_attempt(session: &Session, attempt: &HookAttempt) -> Result<(), Failure> {
    let members = [
        ("ring", attempt.webhook_id.clone()),
        ("at", when(attempt.at)),
        ("result", attempt.result.to_string()),
        ("status", cell(attempt.status.as_ref())),
        ("milliseconds", attempt.latency_ms.to_string()),
    ];
    session.item(attempt, &members)
}
