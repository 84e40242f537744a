//! Where the programs of a control plane come from: `KUBEBUILDER_ASSETS`, a cache outside the repository, or a build from
//! their Go modules into that cache, once.

use std::{
    env,
    ffi::OsString,
    fs::{self, File, TryLockError},
    path::{Path, PathBuf},
};

use anyhow::{Context, Result, bail};

use crate::go_build::{self, Module, ModuleFiles};

/// A directory with ready-made programs, as the tools of kubebuilder leave it; looked at first.
pub const ASSETS_VARIABLE: &str = "KUBEBUILDER_ASSETS";

/// Where the cache of programs built here is; `~/.cache/bellwether/control-plane` unless it is set.
pub const CACHE_VARIABLE: &str = "BELLWETHER_CONTROL_PLANE_CACHE";

/// A file that a control plane needs.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Binary {
    /// The store of a cluster.
    Etcd,
    /// The API server.
    ApiServer,
    /// The controllers: Deployments, Jobs, garbage collection and the rest.
    ControllerManager,
    /// Puts Pods on nodes.
    Scheduler,
    /// The command line.
    Kubectl,
    /// Nodes, and Pods on them, that behave without a kubelet.
    Kwok,
    /// What kwok makes its nodes and Pods do. Not a program, but found in the same way.
    KwokStages,
}

static KUBERNETES: Module = Module {
    name: "kubernetes",
    go_mod: include_str!("../control-plane/kubernetes/go.mod"),
    go_sum: include_str!("../control-plane/kubernetes/go.sum"),
    programs: &[
        ("k8s.io/kubernetes/cmd/kube-apiserver", Binary::ApiServer.file_name()),
        ("k8s.io/kubernetes/cmd/kube-controller-manager", Binary::ControllerManager.file_name()),
        ("k8s.io/kubernetes/cmd/kube-scheduler", Binary::Scheduler.file_name()),
        ("k8s.io/kubernetes/cmd/kubectl", Binary::Kubectl.file_name()),
    ],
    linker_flags: "-s -w -X k8s.io/component-base/version.gitVersion=v1.36.3 \
                   -X k8s.io/component-base/version.gitMajor=1 -X k8s.io/component-base/version.gitMinor=36",
    files: None,
};

static ETCD: Module = Module {
    name: "etcd",
    go_mod: include_str!("../control-plane/etcd/go.mod"),
    go_sum: include_str!("../control-plane/etcd/go.sum"),
    programs: &[("go.etcd.io/etcd/server/v3", Binary::Etcd.file_name())],
    linker_flags: "-s -w",
    files: None,
};

static KWOK: Module = Module {
    name: "kwok",
    go_mod: include_str!("../control-plane/kwok/go.mod"),
    go_sum: include_str!("../control-plane/kwok/go.sum"),
    programs: &[("sigs.k8s.io/kwok/cmd/kwok", Binary::Kwok.file_name())],
    linker_flags: "-s -w",
    files: Some(ModuleFiles {
        module: "sigs.k8s.io/kwok",
        paths: &[
            "kustomize/stage/node/fast/node-initialize.yaml",
            "kustomize/stage/node/heartbeat-with-lease/node-heartbeat-with-lease.yaml",
            "kustomize/stage/pod/fast/pod-ready.yaml",
            "kustomize/stage/pod/fast/pod-complete.yaml",
            "kustomize/stage/pod/fast/pod-delete.yaml",
        ],
        into: Binary::KwokStages.file_name(),
    }),
};

impl Binary {
    /// Everything that a control plane may need.
    pub const ALL: [Self; 7] = [
        Self::Etcd,
        Self::ApiServer,
        Self::ControllerManager,
        Self::Scheduler,
        Self::Kubectl,
        Self::Kwok,
        Self::KwokStages,
    ];

    /// The name of its file.
    pub const fn file_name(self) -> &'static str {
        match self {
            Self::Etcd => "etcd",
            Self::ApiServer => "kube-apiserver",
            Self::ControllerManager => "kube-controller-manager",
            Self::Scheduler => "kube-scheduler",
            Self::Kubectl => "kubectl",
            Self::Kwok => "kwok",
            Self::KwokStages => "kwok-stages.yaml",
        }
    }

    /// Finds it, and builds it if it is nowhere yet, which takes minutes and says so on standard error.
    pub fn find(self) -> Result<PathBuf> {
        Sources::from_environment()?.find(self)
    }

    pub(crate) fn module(self) -> &'static Module {
        match self {
            Self::ApiServer | Self::ControllerManager | Self::Scheduler | Self::Kubectl => &KUBERNETES,
            Self::Etcd => &ETCD,
            Self::Kwok | Self::KwokStages => &KWOK,
        }
    }
}

/// The places to look in.
struct Sources {
    assets: Option<PathBuf>,
    cache: PathBuf,
    go: OsString,
}

impl Sources {
    fn from_environment() -> Result<Self> {
        let assets = env::var_os(ASSETS_VARIABLE).filter(|path| !path.is_empty()).map(PathBuf::from);
        // Tests run in directories of their own: a relative path would mean another place in each.
        if let Some(assets) = assets.as_ref().filter(|assets| !assets.is_absolute() || !assets.is_dir()) {
            bail!(
                "{ASSETS_VARIABLE} is {}, which is no absolute path of a directory: correct it, or unset it",
                assets.display()
            );
        }
        let cache = match env::var_os(CACHE_VARIABLE) {
            Some(directory) => PathBuf::from(directory),
            None => user_cache_directory()?.join("bellwether").join("control-plane"),
        };
        Ok(Self { assets, cache, go: "go".into() })
    }

    fn find(&self, binary: Binary) -> Result<PathBuf> {
        if let Some(asset) = self.assets.as_ref().map(|directory| directory.join(binary.file_name()))
            && asset.is_file()
        {
            return Ok(asset);
        }
        let module = binary.module();
        let built = self.cache.join(module.key());
        if !built.is_dir() {
            self.build(module, &built).with_context(|| format!("cannot get {}", binary.file_name()))?;
        }
        let file = built.join(binary.file_name());
        if !file.is_file() {
            bail!(
                "the cache {} lacks {}: remove it, and it is built again",
                built.display(),
                binary.file_name()
            );
        }
        Ok(file)
    }

    /// Builds a module into the cache, unless another process did so while this one waited for the lock.
    fn build(&self, module: &Module, into: &Path) -> Result<()> {
        if !go_build::is_installed(&self.go) {
            bail!(
                "it is not in the cache {}, and there is no Go to build it with: install Go 1.26 or newer, or set \
                 {ASSETS_VARIABLE} to a directory that has it",
                self.cache.display()
            );
        }
        fs::create_dir_all(&self.cache)
            .with_context(|| format!("cannot make the cache directory {}", self.cache.display()))?;
        let lock_path = into.with_extension("lock");
        let lock =
            File::create(&lock_path).with_context(|| format!("cannot write {}", lock_path.display()))?;
        match lock.try_lock() {
            Ok(()) => {}
            Err(TryLockError::WouldBlock) => {
                go_build::say(&format!("waiting for another process that is building {}", module.name));
                lock.lock()?;
            }
            Err(TryLockError::Error(error)) => return Err(error.into()),
        }
        if into.is_dir() {
            return Ok(());
        }
        // A build that was interrupted leaves its directory under the temporary name, never under the final one.
        let unfinished = into.with_extension("unfinished");
        if unfinished.exists() {
            fs::remove_dir_all(&unfinished)?;
        }
        go_build::build(&self.go, module, &unfinished)?;
        fs::rename(&unfinished, into).context("cannot put the finished programs into the cache")
    }
}

fn user_cache_directory() -> Result<PathBuf> {
    if let Some(directory) = env::var_os("XDG_CACHE_HOME").filter(|directory| !directory.is_empty()) {
        return Ok(directory.into());
    }
    let home = env::home_dir().with_context(|| {
        format!("there is no home directory for the cache: set {CACHE_VARIABLE} to a directory")
    })?;
    Ok(home.join(".cache"))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn nowhere(directory: &Path) -> Sources {
        Sources { assets: None, cache: directory.join("cache"), go: "there-is-no-such-go".into() }
    }

    #[test]
    fn assets_come_first() {
        let directory = tempfile::tempdir().unwrap();
        let asset = directory.path().join("etcd");
        fs::write(&asset, "").unwrap();
        let sources = Sources { assets: Some(directory.path().into()), ..nowhere(directory.path()) };
        assert_eq!(sources.find(Binary::Etcd).unwrap(), asset);
    }

    #[test]
    fn what_the_assets_lack_comes_from_the_cache() {
        let directory = tempfile::tempdir().unwrap();
        let sources = Sources { assets: Some(directory.path().into()), ..nowhere(directory.path()) };
        let cached = sources.cache.join(ETCD.key());
        fs::create_dir_all(&cached).unwrap();
        let damaged = sources.find(Binary::Etcd).unwrap_err().to_string();
        assert!(damaged.ends_with("lacks etcd: remove it, and it is built again"), "{damaged}");
        fs::write(cached.join("etcd"), "").unwrap();
        assert_eq!(sources.find(Binary::Etcd).unwrap(), cached.join("etcd"));
    }

    #[test]
    fn without_go_and_binaries_one_sentence_says_the_way_out() {
        let directory = tempfile::tempdir().unwrap();
        let error = nowhere(directory.path()).find(Binary::ApiServer).unwrap_err();
        let message = format!("{error:#}").replace(directory.path().to_str().unwrap(), "DIR");
        assert_eq!(
            message,
            "cannot get kube-apiserver: it is not in the cache DIR/cache, and there is no Go to build it with: install \
             Go 1.26 or newer, or set KUBEBUILDER_ASSETS to a directory that has it"
        );
    }

    #[test]
    fn every_file_is_made_by_its_module() {
        for binary in Binary::ALL {
            let (module, name) = (binary.module(), binary.file_name());
            let made = module.programs.iter().any(|(_, program)| *program == name)
                || module.files.as_ref().is_some_and(|files| files.into == name);
            assert!(made, "{name} is not made by {}", module.name);
        }
    }

    /// A stand-in for the compiler, which takes its time and writes down every build.
    fn slow_go(directory: &Path) -> Sources {
        let go = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests").join("slow-go");
        Sources { go: go.into(), ..nowhere(directory) }
    }

    fn builds(directory: &Path) -> usize {
        fs::read_to_string(directory.join("cache").join("builds")).unwrap_or_default().lines().count()
    }

    #[test]
    fn of_many_who_need_it_at_once_one_builds_it() {
        let directory = tempfile::tempdir().unwrap();
        let sources = slow_go(directory.path());
        std::thread::scope(|scope| {
            let finders: Vec<_> =
                (0..4).map(|_| scope.spawn(|| sources.find(Binary::Etcd).unwrap())).collect();
            for found in finders.into_iter().map(|finder| finder.join().unwrap()) {
                assert_eq!(fs::read_to_string(found).unwrap(), "program\n");
            }
        });
        assert_eq!(builds(directory.path()), 1);
    }

    #[test]
    fn a_build_that_was_interrupted_is_done_again() {
        let directory = tempfile::tempdir().unwrap();
        let sources = slow_go(directory.path());
        let unfinished = sources.cache.join(ETCD.key()).with_extension("unfinished");
        fs::create_dir_all(&unfinished).unwrap();
        fs::write(unfinished.join("etcd"), "half a prog").unwrap();
        assert_eq!(fs::read_to_string(sources.find(Binary::Etcd).unwrap()).unwrap(), "program\n");
    }

    #[test]
    fn a_build_that_fails_says_why_and_leaves_nothing_in_the_cache() {
        let directory = tempfile::tempdir().unwrap();
        let sources = slow_go(directory.path());
        fs::create_dir_all(&sources.cache).unwrap();
        fs::write(sources.cache.join("fail"), "").unwrap();
        for attempt in 1..=2 {
            let error = format!("{:#}", sources.find(Binary::Etcd).unwrap_err());
            assert_eq!(error, "cannot get etcd: cannot build etcd: go build failed:\ngo.mod: no such module");
            assert_eq!(builds(directory.path()), attempt, "the next one tries again");
        }
    }
}
