//! A control plane: etcd, an API server and, optionally, the controller manager, the scheduler and nodes.

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
    wait::TIMEOUT,
};

/// A running control plane. Dropping it kills its processes and removes its files.
pub struct Cluster {
    name: String,
    directory: PathBuf,
    authority: Arc<Authority>,
    admin: Access,
    nodes: usize,
    parts: BTreeMap<Part, Program>,
    etcd: Port,
    _reserved: [Port; 2],
}

/// A process of a control plane. The order is the order in which they start.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum Part {
    Etcd,
    ApiServer,
    ControllerManager,
    Scheduler,
    /// Simulates the kubelets of all nodes.
    Kwok,
}

#[derive(Clone, Debug, Default)]
pub struct ClusterBuilder {
    name: Option<String>,
    controllers: bool,
    nodes: usize,
}

impl ClusterBuilder {
    /// The name of the context in its kubeconfigs, and part of the path of its files.
    #[must_use]
    pub fn name(mut self, name: &str) -> Self {
        self.name = Some(name.to_owned());
        self
    }

    /// Adds the controller manager: ReplicaSets, Jobs, service accounts and garbage collection work.
    #[must_use]
    pub fn controllers(mut self) -> Self {
        self.controllers = true;
        self
    }

    /// Adds nodes, the scheduler and the controller manager: Pods are scheduled and become ready.
    #[must_use]
    pub fn nodes(mut self, nodes: usize) -> Self {
        self.nodes = nodes;
        self
    }

    /// Starts all parts and waits until the API server and the nodes are ready.
    pub async fn start(self) -> Result<Cluster> {
        let cluster = Cluster::new(self)?;
        for part in cluster.parts() {
            cluster.start_part(part).await?;
        }
        if cluster.nodes > 0 {
            nodes::create(&cluster.admin.client().await?, cluster.nodes, TIMEOUT).await?;
        }
        Ok(cluster)
    }
}

impl Cluster {
    pub fn builder() -> ClusterBuilder {
        ClusterBuilder::default()
    }

    /// Starts only etcd and an API server.
    pub async fn start() -> Result<Self> {
        Self::builder().start().await
    }

    fn new(builder: ClusterBuilder) -> Result<Self> {
        static COUNT: AtomicUsize = AtomicUsize::new(0);

        let controllers = builder.controllers || builder.nodes > 0;
        let (etcd, peers, own) = (Port::reserve()?, Port::reserve()?, Port::reserve()?);
        let name = builder.name.unwrap_or_else(|| "cluster".to_owned());
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
        if builder.nodes > 0 {
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
            nodes: builder.nodes,
            parts: programs,
            etcd,
            _reserved: [peers, own],
        })
    }

    pub fn name(&self) -> &str {
        &self.name
    }

    /// The directory with data, certificates and kubeconfigs. It is removed when the cluster is dropped.
    pub fn directory(&self) -> &Path {
        &self.directory
    }

    /// The path of the administrator's kubeconfig.
    pub fn kubeconfig(&self) -> PathBuf {
        self.directory.join(arguments::ADMIN_KUBECONFIG)
    }

    /// The authority that signs the certificates of the API server and of users.
    pub fn authority(&self) -> &Arc<Authority> {
        &self.authority
    }

    /// The address of the API server.
    pub fn address(&self) -> SocketAddr {
        self.admin.address
    }

    /// A user in the group `system:masters`.
    pub fn admin(&self) -> &Access {
        &self.admin
    }

    /// A user without any rights. See [`Cluster::grant`].
    pub fn user(&self, name: &str) -> Result<Access> {
        let identity = self.authority.client(name, None)?;
        Ok(Access { login: Login::Certificate(Box::new(identity)), ..self.admin.clone() })
    }

    /// The parts of this cluster, in the order in which they start.
    pub fn parts(&self) -> impl Iterator<Item = Part> + '_ {
        self.parts.keys().copied()
    }

    /// The process id of a part; `None` if it is not running.
    pub fn process_id(&self, part: Part) -> Option<u32> {
        self.parts.get(&part).and_then(Program::id)
    }

    /// The output of a part since the cluster was created.
    pub fn log(&self, part: Part) -> Result<String> {
        Ok(self.part(part)?.log())
    }

    /// Sends SIGTERM to a part, and SIGKILL if it does not end. Stop the API server before etcd: without etcd
    /// it ignores SIGTERM.
    pub async fn stop_part(&self, part: Part) -> Result<()> {
        self.part(part)?.stop().await.map(drop)
    }

    /// Sends SIGKILL to a part.
    pub fn kill_part(&self, part: Part) -> Result<()> {
        self.part(part)?.kill();
        Ok(())
    }

    /// Sends SIGSTOP to a part: its connections stay open, but it does not answer on them.
    pub fn pause_part(&self, part: Part) -> Result<()> {
        self.part(part)?.pause()
    }

    /// Sends SIGCONT to a paused part.
    pub fn resume_part(&self, part: Part) -> Result<()> {
        self.part(part)?.resume()
    }

    /// Starts a part that was stopped or killed, with the same data and address.
    ///
    /// Waits until etcd or the API server is ready. The other parts have no port to probe: a test must wait
    /// for their effect on objects.
    pub async fn start_part(&self, part: Part) -> Result<()> {
        let program = self.part(part)?;
        // If a part on which this one depends dies meanwhile, the error names that part. Parts that were not
        // running before are skipped: a test may have stopped them on purpose.
        let running: Vec<&Program> = self.parts.values().filter(|other| other.is_running()).collect();
        program.start()?;
        let deadline = Instant::now() + TIMEOUT;
        while !self.is_ready(part).await {
            if let Some(dead) = running.iter().find(|other| !other.is_running()) {
                bail!("{} of cluster {} ended:\n{}", dead.name(), self.name, dead.log_tail());
            }
            if !program.is_running() {
                bail!(
                    "{} of cluster {} ended during its start:\n{}",
                    program.name(),
                    self.name,
                    program.log_tail()
                );
            }
            if Instant::now() > deadline {
                let (name, seconds) = (program.name(), TIMEOUT.as_secs());
                let cluster = &self.name;
                bail!("{name} of cluster {cluster} is not ready after {seconds} s:\n{}", program.log_tail());
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
        // A frozen server accepts connections and never answers.
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
        // If this fails, the guardian removes the directory when the process ends.
        let _ = fs::remove_dir_all(&self.directory);
    }
}
