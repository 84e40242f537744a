//! A control plane: etcd, an API server and, on request, the controllers, the scheduler and nodes.

use std::{
    collections::BTreeMap,
    fs,
    net::SocketAddr,
    path::{Path, PathBuf},
    sync::{
        Arc,
        atomic::{AtomicUsize, Ordering},
    },
    time::Duration,
};

use anyhow::{Context, Result, bail};
use tokio::{
    io::{AsyncReadExt as _, AsyncWriteExt as _},
    net::TcpStream,
    time::{Instant, sleep, timeout},
};

use crate::{
    access::{Access, Login},
    arguments::{self, Layout},
    binaries::Binary,
    guardian::Guardian,
    nodes,
    pki::Authority,
    ports::Port,
    program::Program,
    wait::PATIENCE,
};

/// A running control plane of its own. Everything it is made of goes when it is dropped.
pub struct Cluster {
    name: String,
    directory: PathBuf,
    authority: Arc<Authority>,
    admin: Access,
    nodes: usize,
    parts: BTreeMap<Part, Program>,
    etcd: Port,
    _held: [Port; 2],
}

/// A process of a control plane.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum Part {
    /// The store.
    Etcd,
    /// The API server.
    ApiServer,
    /// The controllers, the garbage collector among them.
    ControllerManager,
    /// The scheduler.
    Scheduler,
    /// The nodes and the Pods on them.
    Kwok,
}

/// What a cluster is to have.
#[derive(Clone, Debug, Default)]
pub struct ClusterBuilder {
    name: Option<String>,
    controllers: bool,
    nodes: usize,
}

impl ClusterBuilder {
    /// A name for people: the name of the context in its kubeconfigs, and a part of the path of its files.
    #[must_use]
    pub fn name(mut self, name: &str) -> Self {
        self.name = Some(name.to_owned());
        self
    }

    /// With the controller manager: ReplicaSets, Jobs, service accounts and garbage collection are real.
    #[must_use]
    pub fn controllers(mut self) -> Self {
        self.controllers = true;
        self
    }

    /// With this many nodes, and so with the scheduler and the controllers too: Pods are placed and become ready.
    #[must_use]
    pub fn nodes(mut self, nodes: usize) -> Self {
        self.nodes = nodes;
        self
    }

    /// Starts it, and waits until it is ready for use.
    pub async fn start(self) -> Result<Cluster> {
        let cluster = Cluster::new(self)?;
        for part in cluster.parts() {
            cluster.start_part(part).await?;
        }
        if cluster.nodes > 0 {
            nodes::create(&cluster.admin.client().await?, cluster.nodes, PATIENCE).await?;
        }
        Ok(cluster)
    }
}

impl Cluster {
    /// A description of a cluster, to be completed and started.
    pub fn builder() -> ClusterBuilder {
        ClusterBuilder::default()
    }

    /// The least that is a control plane: etcd and an API server.
    pub async fn start() -> Result<Self> {
        Self::builder().start().await
    }

    fn new(wish: ClusterBuilder) -> Result<Self> {
        static COUNT: AtomicUsize = AtomicUsize::new(0);

        let controllers = wish.controllers || wish.nodes > 0;
        let (etcd, peers, own) = (Port::reserve()?, Port::reserve()?, Port::reserve()?);
        let name = wish.name.unwrap_or_else(|| "cluster".to_owned());
        let directory =
            Guardian::get()?.directory().join(format!("{name}-{}", COUNT.fetch_add(1, Ordering::Relaxed)));
        let authority = Arc::new(Authority::new()?);
        let admin = Access {
            cluster: name.clone(),
            address: own.address(),
            authority: Arc::clone(&authority),
            login: Login::Certificate(Box::new(authority.client("admin", Some("system:masters"))?)),
        };

        fs::create_dir_all(&directory)?;
        let layout = Layout::write(&directory, &authority, &admin)?;
        let mut programs = vec![
            (Part::Etcd, Binary::Etcd, arguments::etcd(&layout, etcd.address(), peers.address())),
            (
                Part::ApiServer,
                Binary::ApiServer,
                arguments::api_server(&layout, etcd.address(), own.address(), controllers),
            ),
        ];
        if controllers {
            programs.push((
                Part::ControllerManager,
                Binary::ControllerManager,
                arguments::controller_manager(&layout),
            ));
        }
        if wish.nodes > 0 {
            programs.push((Part::Scheduler, Binary::Scheduler, arguments::scheduler(&layout)));
            programs.push((Part::Kwok, Binary::Kwok, arguments::kwok(&layout, &Binary::KwokStages.find()?)));
        }
        let programs = programs
            .into_iter()
            .map(|(part, binary, arguments)| Ok((part, Program::new(binary.find()?)?.arguments(arguments))))
            .collect::<Result<_>>()?;
        Ok(Self {
            name,
            directory,
            authority,
            admin,
            nodes: wish.nodes,
            parts: programs,
            etcd,
            _held: [peers, own],
        })
    }

    /// Its name.
    pub fn name(&self) -> &str {
        &self.name
    }

    /// Its own directory: data, certificates, kubeconfigs. Gone when the cluster is.
    pub fn directory(&self) -> &Path {
        &self.directory
    }

    /// The administrator's kubeconfig as a file.
    pub fn kubeconfig(&self) -> PathBuf {
        self.directory.join(arguments::ADMIN_KUBECONFIG)
    }

    /// Who vouches for its API server and its users.
    pub fn authority(&self) -> &Arc<Authority> {
        &self.authority
    }

    /// Where its API server listens.
    pub fn address(&self) -> SocketAddr {
        self.admin.address
    }

    /// The user who may do everything.
    pub fn admin(&self) -> &Access {
        &self.admin
    }

    /// A user who may do nothing yet: see [`Cluster::grant`].
    pub fn user(&self, name: &str) -> Result<Access> {
        let identity = self.authority.client(name, None)?;
        Ok(Access { login: Login::Certificate(Box::new(identity)), ..self.admin.clone() })
    }

    /// The parts that it has, in the order in which they start.
    pub fn parts(&self) -> impl Iterator<Item = Part> + '_ {
        self.parts.keys().copied()
    }

    /// The process id of a part, while it runs.
    pub fn process_id(&self, part: Part) -> Option<u32> {
        self.parts.get(&part).and_then(Program::id)
    }

    /// Everything that a part has written so far.
    pub fn log(&self, part: Part) -> Result<String> {
        Ok(self.part(part)?.log())
    }

    /// Asks a part to end, and kills it if it does not. End the API server before its etcd: without a store it does not
    /// end when asked.
    pub async fn stop_part(&self, part: Part) -> Result<()> {
        self.part(part)?.stop().await.map(drop)
    }

    /// `kill -9`: the part ends at once and has no say in it.
    pub fn kill_part(&self, part: Part) -> Result<()> {
        self.part(part)?.kill();
        Ok(())
    }

    /// Freezes a part: its connections stay open, and nothing answers on them.
    pub fn pause_part(&self, part: Part) -> Result<()> {
        self.part(part)?.pause()
    }

    /// Lets a paused part go on.
    pub fn resume_part(&self, part: Part) -> Result<()> {
        self.part(part)?.resume()
    }

    /// Starts a part that was stopped or killed, with the data it had, at the same address.
    ///
    /// It waits until etcd or the API server is ready for use. The others have no address of their own: what they do
    /// shows in the objects of the cluster, in their own time.
    pub async fn start_part(&self, part: Part) -> Result<()> {
        let program = self.part(part)?;
        // One part needs another; if that one dies first, it is to blame. But a test may have ended it on purpose.
        let running: Vec<&Program> = self.parts.values().filter(|other| other.is_running()).collect();
        program.start()?;
        let deadline = Instant::now() + PATIENCE;
        while !self.is_ready(part).await {
            if let Some(dead) = running.iter().find(|other| !other.is_running()) {
                bail!("{} of {} ended:\n{}", dead.name(), self.name, dead.last_words());
            }
            if !program.is_running() {
                bail!("{} of {} ended at once:\n{}", program.name(), self.name, program.last_words());
            }
            if Instant::now() > deadline {
                let (name, seconds) = (program.name(), PATIENCE.as_secs());
                bail!("{name} of {} was not ready within {seconds} s:\n{}", self.name, program.last_words());
            }
            sleep(Duration::from_millis(50)).await;
        }
        Ok(())
    }

    fn part(&self, part: Part) -> Result<&Program> {
        self.parts.get(&part).with_context(|| format!("cluster {} was started without {part:?}", self.name))
    }

    async fn is_ready(&self, part: Part) -> bool {
        let ask = async {
            match part {
                Part::Etcd => self.etcd_is_healthy().await,
                Part::ApiServer => {
                    let request = http::Request::get("/readyz").body(Vec::new())?;
                    Ok(self.admin.client().await?.request_text(request).await? == "ok")
                }
                Part::ControllerManager | Part::Scheduler | Part::Kwok => Ok(true),
            }
        };
        // A half-dead server accepts connections and never answers.
        matches!(timeout(Duration::from_secs(2), ask).await, Ok(Ok(true)))
    }

    async fn etcd_is_healthy(&self) -> Result<bool> {
        let mut connection = TcpStream::connect(self.etcd.address()).await?;
        connection.write_all(b"GET /health HTTP/1.0\r\n\r\n").await?;
        let mut answer = String::new();
        connection.read_to_string(&mut answer).await?;
        Ok(answer.contains(r#""health":"true""#))
    }
}

impl Drop for Cluster {
    fn drop(&mut self) {
        for program in self.parts.values() {
            program.kill();
        }
        // What cannot be removed now, the guardian removes when this process ends.
        let _ = fs::remove_dir_all(&self.directory);
    }
}
