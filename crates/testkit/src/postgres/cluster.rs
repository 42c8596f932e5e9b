//! A cluster: made, started, crashed, started again.

use std::net::TcpListener;
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};
use std::sync::OnceLock;
use std::sync::atomic::{AtomicU32, Ordering};

use super::programs::ServerPrograms;

/// Whether what was committed survives a crash.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Durability {
    /// Nothing waits for the disk. For tests that crash nothing.
    None,
    /// As in production. For tests that crash, and for measurements.
    Full,
}

/// How to make a cluster.
#[derive(Clone, Debug)]
pub struct ClusterOptions {
    /// Whether commits wait for the disk.
    pub durability: Durability,
    /// More settings of `postgresql.conf`.
    pub settings: Vec<(String, String)>,
}

impl ClusterOptions {
    /// These defaults, and nothing else.
    pub fn new(durability: Durability) -> Self {
        Self { durability, settings: Vec::new() }
    }

    /// With a setting of `postgresql.conf`.
    #[must_use]
    pub fn with(mut self, name: &str, value: &str) -> Self {
        self.settings.push((name.to_owned(), value.to_owned()));
        self
    }
}

/// A PostgreSQL server of this process, or one that was named in `DOORSTEP_TEST_POSTGRES`.
#[derive(Debug)]
pub struct Cluster {
    url: String,
    own: Option<Own>,
}

/// What there is of a cluster that this process made.
#[derive(Debug)]
struct Own {
    programs: ServerPrograms,
    directory: PathBuf,
    watchdog: Child,
}

/// Ends the server and removes its directory when the pipe of its input ends.
const WATCHDOG: &str = r#"cat >/dev/null; "$1/pg_ctl" -D "$2/data" -m immediate stop >/dev/null 2>&1; rm -rf "$2""#;
/// Attempts to find a free port that nobody else takes meanwhile.
const ATTEMPTS: usize = 10;

static MADE: AtomicU32 = AtomicU32::new(0);

impl Cluster {
    /// The one cluster that the tests of this process share: the one named in `DOORSTEP_TEST_POSTGRES` (a URL of a superuser, without a database), or a
    /// new one without durability.
    ///
    /// # Panics
    /// When there is none and none can be made.
    pub fn shared() -> &'static Self {
        static SHARED: OnceLock<Cluster> = OnceLock::new();
        SHARED.get_or_init(|| match std::env::var("DOORSTEP_TEST_POSTGRES") {
            Ok(url) if !url.is_empty() => Self { url: url.trim_end_matches('/').to_owned(), own: None },
            _ => Self::start(&ClusterOptions::new(Durability::None)),
        })
    }

    /// Makes a cluster and starts it.
    ///
    /// # Panics
    /// When the programs are missing, or fail; the message says why.
    pub fn start(options: &ClusterOptions) -> Self {
        Self::try_start(options).unwrap_or_else(|reason| panic!("{reason}"))
    }

    /// [`Cluster::start`] for those who have something else to say.
    ///
    /// # Errors
    /// A sentence with what is missing or failed.
    pub fn try_start(options: &ClusterOptions) -> Result<Self, String> {
        Self::raise(options, Self::make)
    }

    /// A copy of this one that follows it and calls itself `standby`.
    ///
    /// # Panics
    /// When it cannot be made or started; for a cluster without [`Durability::Full`], which tells nobody what it does.
    #[must_use]
    pub fn standby(&self) -> Self {
        let follow = |standby: &Self| {
            let mut command = self.own().programs.command("pg_basebackup");
            command.arg("-D").arg(standby.data()).args(["-d", &self.url, "-X", "stream", "--checkpoint=fast", "--no-sync"]);
            run(&mut command)?;
            std::fs::write(standby.data().join("standby.signal"), "").map_err(|error| format!("standby.signal: {error}"))
        };
        let primary = format!("host=127.0.0.1 port={} user=postgres application_name=standby", self.port());
        let options = ClusterOptions::new(Durability::Full).with("primary_conninfo", &primary);
        Self::raise(&options, follow).unwrap_or_else(|reason| panic!("{reason}"))
    }

    /// Makes a standby a primary.
    pub fn promote(&self) {
        self.control(&["promote"]);
    }

    fn raise(options: &ClusterOptions, make: impl FnOnce(&Self) -> Result<(), String>) -> Result<Self, String> {
        let programs = ServerPrograms::find()?;
        let name = format!("doorstep-postgres-{}-{}", std::process::id(), MADE.fetch_add(1, Ordering::Relaxed));
        let directory = place(options.durability).join(name);
        std::fs::create_dir(&directory).map_err(|error| format!("{} cannot be made: {error}", directory.display()))?;
        if let Some((user, group)) = programs.user() {
            std::os::unix::fs::chown(&directory, Some(user), Some(group)).map_err(|error| format!("chown: {error}"))?;
        }
        let watchdog = watch(&programs, &directory)?;
        let mut cluster = Self { url: String::new(), own: Some(Own { programs, directory, watchdog }) };
        make(&cluster)?;
        cluster.configure(options)?;
        for _ in 0..ATTEMPTS {
            let port = free_port()?;
            if cluster.serve(port).is_ok() {
                cluster.url = format!("postgres://postgres@127.0.0.1:{port}");
                return Ok(cluster);
            }
        }
        Err(format!("the PostgreSQL server does not start:\n{}", cluster.log()))
    }

    /// The URL of the superuser, without a database.
    pub fn url(&self) -> &str {
        &self.url
    }

    /// The URL of a database.
    pub fn url_of(&self, database: &str) -> String {
        format!("{}/{database}?sslmode=disable", self.url)
    }

    /// The port that it listens on.
    pub fn port(&self) -> u16 {
        self.url.rsplit(':').next().and_then(|port| port.parse().ok()).expect("a URL with a port")
    }

    /// Ends it as a crash would: nothing is written, sessions are cut, and the next start recovers.
    pub fn crash(&self) {
        self.control(&["-m", "immediate", "stop"]);
    }

    /// Ends it in order, cutting sessions.
    pub fn stop(&self) {
        self.control(&["-m", "fast", "stop"]);
    }

    /// Starts it again on the same port.
    pub fn start_again(&self) {
        self.serve(self.port()).unwrap_or_else(|reason| panic!("{reason}\n{}", self.log()));
    }

    /// The data directory.
    ///
    /// # Panics
    /// For a cluster that this process has not made.
    pub fn data(&self) -> PathBuf {
        self.own().directory.join("data")
    }

    /// The programs that it was made with.
    ///
    /// # Panics
    /// For a cluster that this process has not made.
    pub fn programs(&self) -> &ServerPrograms {
        &self.own().programs
    }

    /// What the server logged.
    pub fn log(&self) -> String {
        self.own.as_ref().map(|own| std::fs::read_to_string(own.directory.join("log")).unwrap_or_default()).unwrap_or_default()
    }

    fn own(&self) -> &Own {
        self.own.as_ref().expect("a cluster of this process")
    }

    /// An ordering that is not bytewise shows which statements forget to ask for one that is.
    fn make(&self) -> Result<(), String> {
        let icu = ["--locale-provider=icu", "--icu-locale=en-US", "--locale=C"];
        self.initdb(&icu).or_else(|_| self.initdb(&["--locale=C"]))
    }

    fn initdb(&self, locale: &[&str]) -> Result<(), String> {
        let mut command = self.own().programs.command("initdb");
        command.arg("-D").arg(self.data()).args(["-U", "postgres", "-A", "trust", "-E", "UTF8", "--no-sync"]).args(locale);
        run(&mut command).map(drop)
    }

    fn configure(&self, options: &ClusterOptions) -> Result<(), String> {
        let socket = self.own().directory.display().to_string();
        let mut settings = vec![
            ("listen_addresses", "127.0.0.1"),
            ("unix_socket_directories", socket.as_str()),
            ("max_connections", "300"),
            ("shared_buffers", "128MB"),
            ("timezone", "UTC"),
        ];
        if options.durability == Durability::None {
            // Commits stay synchronous: stores refuse sessions that do not wait.
            settings.extend([("fsync", "off"), ("full_page_writes", "off"), ("wal_level", "minimal"), ("max_wal_senders", "0")]);
        }
        settings.extend(options.settings.iter().map(|(name, value)| (name.as_str(), value.as_str())));
        let text = settings.iter().fold(String::new(), |text, (name, value)| text + &format!("{name} = '{value}'\n"));
        let path = self.data().join("postgresql.auto.conf");
        std::fs::write(&path, text).map_err(|error| format!("{} cannot be written: {error}", path.display()))
    }

    fn serve(&self, port: u16) -> Result<(), String> {
        let log = self.own().directory.join("log");
        let mut command = self.own().programs.command("pg_ctl");
        command.arg("-D").arg(self.data()).arg("-l").arg(log).args(["-w", "-t", "60", "-o", &format!("-p {port}"), "start"]);
        run(&mut command).map(drop)
    }

    fn control(&self, arguments: &[&str]) {
        let mut command = self.own().programs.command("pg_ctl");
        command.arg("-D").arg(self.data()).arg("-w").args(arguments);
        run(&mut command).unwrap_or_else(|reason| panic!("{reason}"));
    }
}

impl Drop for Cluster {
    fn drop(&mut self) {
        if let Some(own) = &mut self.own {
            drop(own.watchdog.stdin.take());
            let _ = own.watchdog.wait();
        }
    }
}

fn watch(programs: &ServerPrograms, directory: &Path) -> Result<Child, String> {
    let mut command = programs.as_user(Command::new("/bin/sh"));
    command.args(["-c", WATCHDOG, "watchdog"]).arg(programs.directory()).arg(directory);
    // A signal to the group of the tests must not end the watchdog first.
    std::os::unix::process::CommandExt::process_group(&mut command, 0);
    let piped = command.stdin(Stdio::piped()).stdout(Stdio::null()).stderr(Stdio::null());
    piped.spawn().map_err(|error| format!("the watchdog does not start: {error}"))
}

/// The memory's own file system when nothing need survive and there is room: making and dropping a database is ten times as fast there.
fn place(durability: Durability) -> PathBuf {
    const MEMORY: &str = "/dev/shm";
    const ROOM_KIBIBYTES: u64 = 4 << 20;
    let room = || {
        let told = Command::new("df").args(["-Pk", MEMORY]).stderr(Stdio::null()).output().ok()?;
        String::from_utf8(told.stdout).ok()?.lines().nth(1)?.split_whitespace().nth(3)?.parse::<u64>().ok()
    };
    match durability {
        Durability::None if room().is_some_and(|room| room >= ROOM_KIBIBYTES) => PathBuf::from(MEMORY),
        _ => std::env::temp_dir(),
    }
}

fn free_port() -> Result<u16, String> {
    let listener = TcpListener::bind("127.0.0.1:0").map_err(|error| format!("no free port: {error}"))?;
    listener.local_addr().map(|address| address.port()).map_err(|error| format!("no free port: {error}"))
}

/// Runs a program to its end. Its output goes to files: a server that it starts would keep a pipe open.
fn run(command: &mut Command) -> Result<(), String> {
    let program = Path::new(command.get_program()).file_name().unwrap_or_default().to_string_lossy().into_owned();
    let said = tempfile::tempfile().map_err(|error| format!("no temporary file: {error}"))?;
    let clone = || said.try_clone().map_err(|error| format!("no temporary file: {error}"));
    command.stdin(Stdio::null()).stdout(clone()?).stderr(clone()?);
    let status = command.status().map_err(|error| format!("{program} does not start: {error}"))?;
    if status.success() {
        return Ok(());
    }
    let mut said = said;
    let mut text = String::new();
    let _ = std::io::Seek::rewind(&mut said).and_then(|()| std::io::Read::read_to_string(&mut said, &mut text));
    Err(format!("{program} ended with {status}: {text}"))
}
