//! The binaries of a control plane: from `KUBEBUILDER_ASSETS`, from a cache outside the repository, or built
//! once from their Go modules into that cache.

use std::{
    env,
    ffi::OsString,
    fs::{self, File, TryLockError},
    path::{Path, PathBuf},
};

use anyhow::{Context, Result, bail};

use crate::go_build::{self, Module, ModuleFiles};

/// A directory with prebuilt binaries, as `setup-envtest` leaves it. It takes precedence over the cache.
pub const ASSETS_VARIABLE: &str = "KUBEBUILDER_ASSETS";

/// The directory of the cache; the default is `~/.cache/bellwether/control-plane`.
pub const CACHE_VARIABLE: &str = "BELLWETHER_CONTROL_PLANE_CACHE";

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Binary {
    Etcd,
    ApiServer,
    ControllerManager,
    Scheduler,
    Kubectl,
    /// Simulates the kubelets of all nodes.
    Kwok,
    /// The stages that kwok applies to nodes and Pods: a YAML file from the same module.
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
    pub const ALL: [Self; 7] = [
        Self::Etcd,
        Self::ApiServer,
        Self::ControllerManager,
        Self::Scheduler,
        Self::Kubectl,
        Self::Kwok,
        Self::KwokStages,
    ];

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

    /// Returns the path of the file. Builds it if it does not exist yet: that takes minutes, and progress
    /// goes to standard error.
    pub fn find(self) -> Result<PathBuf> {
        ClusterSources::from_environment()?.find(self)
    }

    pub(crate) fn module(self) -> &'static Module {
        match self {
            Self::ApiServer | Self::ControllerManager | Self::Scheduler | Self::Kubectl => &KUBERNETES,
            Self::Etcd => &ETCD,
            Self::Kwok | Self::KwokStages => &KWOK,
        }
    }
}

struct ClusterSources {
    assets: Option<PathBuf>,
    cache: PathBuf,
    go: OsString,
}

impl ClusterSources {
    fn from_environment() -> Result<Self> {
        let assets = env::var_os(ASSETS_VARIABLE).filter(|path| !path.is_empty()).map(PathBuf::from);
        // Tests run in different directories, so a relative path would be ambiguous.
        if let Some(assets) = assets.as_ref().filter(|assets| !assets.is_absolute() || !assets.is_dir()) {
            bail!(
                "{ASSETS_VARIABLE}={} is not the absolute path of a directory. Correct it or unset it.",
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
                "the cache directory {} does not contain {}. Remove the directory to build it again.",
                built.display(),
                binary.file_name()
            );
        }
        Ok(file)
    }

    /// Builds a module into the cache, unless another process built it while this one waited for the lock.
    fn build(&self, module: &Module, into: &Path) -> Result<()> {
        if !go_build::is_installed(&self.go) {
            bail!(
                "not found in the cache {}, and Go is not installed to build it. Install Go 1.26 or newer, or set \
                 {ASSETS_VARIABLE} to a directory with the binary.",
                self.cache.display()
            );
        }
        fs::create_dir_all(&self.cache)
            .with_context(|| format!("cannot create the cache directory {}", self.cache.display()))?;
        let lock_path = into.with_extension("lock");
        let lock =
            File::create(&lock_path).with_context(|| format!("cannot write {}", lock_path.display()))?;
        match lock.try_lock() {
            Ok(()) => {}
            Err(TryLockError::WouldBlock) => {
                go_build::log(&format!("waiting for another process that builds {}", module.name));
                lock.lock()?;
            }
            Err(TryLockError::Error(error)) => return Err(error.into()),
        }
        if into.is_dir() {
            return Ok(());
        }
        // An interrupted build leaves only the temporary directory, never the final one.
        let unfinished = into.with_extension("unfinished");
        if unfinished.exists() {
            fs::remove_dir_all(&unfinished)?;
        }
        go_build::build(&self.go, module, &unfinished)?;
        fs::rename(&unfinished, into).context("cannot move the built binaries into the cache")
    }
}

fn user_cache_directory() -> Result<PathBuf> {
    if let Some(directory) = env::var_os("XDG_CACHE_HOME").filter(|directory| !directory.is_empty()) {
        return Ok(directory.into());
    }
    let home = env::home_dir().with_context(|| {
        format!("the home directory is unknown. Set {CACHE_VARIABLE} to the directory of the cache.")
    })?;
    Ok(home.join(".cache"))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn nowhere(directory: &Path) -> ClusterSources {
        ClusterSources { assets: None, cache: directory.join("cache"), go: "go-is-not-installed".into() }
    }

    #[test]
    fn assets_come_first() {
        let directory = tempfile::tempdir().unwrap();
        let asset = directory.path().join("etcd");
        fs::write(&asset, "").unwrap();
        let sources = ClusterSources { assets: Some(directory.path().into()), ..nowhere(directory.path()) };
        assert_eq!(sources.find(Binary::Etcd).unwrap(), asset);
    }

    #[test]
    fn the_cache_has_what_the_assets_do_not() {
        let directory = tempfile::tempdir().unwrap();
        let sources = ClusterSources { assets: Some(directory.path().into()), ..nowhere(directory.path()) };
        let cached = sources.cache.join(ETCD.key());
        fs::create_dir_all(&cached).unwrap();
        let damaged = sources.find(Binary::Etcd).unwrap_err().to_string();
        assert!(
            damaged.ends_with("does not contain etcd. Remove the directory to build it again."),
            "{damaged}"
        );
        fs::write(cached.join("etcd"), "").unwrap();
        assert_eq!(sources.find(Binary::Etcd).unwrap(), cached.join("etcd"));
    }

    #[test]
    fn without_go_and_binaries_the_error_names_both_ways_out() {
        let directory = tempfile::tempdir().unwrap();
        let error = nowhere(directory.path()).find(Binary::ApiServer).unwrap_err();
        let message = format!("{error:#}").replace(directory.path().to_str().unwrap(), "DIR");
        assert_eq!(
            message,
            "cannot get kube-apiserver: not found in the cache DIR/cache, and Go is not installed to build it. \
             Install Go 1.26 or newer, or set KUBEBUILDER_ASSETS to a directory with the binary."
        );
    }

    #[test]
    fn every_file_is_made_by_its_module() {
        for binary in Binary::ALL {
            let (module, name) = (binary.module(), binary.file_name());
            let made = module.programs.iter().any(|(_, program)| *program == name)
                || module.files.as_ref().is_some_and(|files| files.into == name);
            assert!(made, "module {} does not build {name}", module.name);
        }
    }

    /// A fake `go` that is slow and records every build.
    fn slow_go(directory: &Path) -> ClusterSources {
        let go = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests").join("slow-go");
        ClusterSources { go: go.into(), ..nowhere(directory) }
    }

    fn builds(directory: &Path) -> usize {
        fs::read_to_string(directory.join("cache").join("builds")).unwrap_or_default().lines().count()
    }

    #[test]
    fn concurrent_callers_build_a_module_once() {
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
    fn an_interrupted_build_is_repeated() {
        let directory = tempfile::tempdir().unwrap();
        let sources = slow_go(directory.path());
        let unfinished = sources.cache.join(ETCD.key()).with_extension("unfinished");
        fs::create_dir_all(&unfinished).unwrap();
        fs::write(unfinished.join("etcd"), "half a prog").unwrap();
        assert_eq!(fs::read_to_string(sources.find(Binary::Etcd).unwrap()).unwrap(), "program\n");
    }

    #[test]
    fn a_failed_build_reports_the_error_and_leaves_nothing_in_the_cache() {
        let directory = tempfile::tempdir().unwrap();
        let sources = slow_go(directory.path());
        fs::create_dir_all(&sources.cache).unwrap();
        fs::write(sources.cache.join("fail"), "").unwrap();
        for attempt in 1..=2 {
            let error = format!("{:#}", sources.find(Binary::Etcd).unwrap_err());
            assert_eq!(error, "cannot get etcd: cannot build etcd: go build failed:\ngo.mod: no such module");
            assert_eq!(builds(directory.path()), attempt, "a failed build is retried");
        }
    }
}
