//! What a process runs in, by the names that container runtimes, the kubelet and Slurm give to control groups.
//!
//! - docker: `/docker/ID`, `/system.slice/docker-ID.scope` (moby, `daemon/oci_linux.go`)
//! - containerd and cri-o under the kubelet: `…/kubepods-burstable-podUID.slice/cri-containerd-ID.scope`, `crio-ID.scope`, with
//!   `_` for `-` in the UID, or `/kubepods/burstable/podUID/ID` without systemd; `…podUID.slice:cri-containerd:ID` of containerd
//!   without its own setting (Kubernetes, `pkg/kubelet/cm/cgroup_manager_linux.go`)
//! - podman: `libpod-ID.scope`, with `container` below it; `conmon` is the watcher of a container, and not in it
//! - Slurm: `…/job_ID/step_…` (Slurm, cgroup documentation)

use model::Place;

/// Hexadecimal digits of a container's identity.
const IDENTITY: usize = 64;

/// The place of a process, from the text of its `cgroup`: one line a hierarchy, `NUMBER:CONTROLLERS:PATH` (cgroups(7)). The
/// innermost container counts: one may run in another.
pub(crate) fn of_cgroup(text: &str) -> Place {
    let paths = text.lines().filter_map(|line| line.splitn(3, ':').nth(2));
    let mut places: Vec<Place> = paths.map(of_path).collect();
    // Hierarchies of version 1 that nobody manages stay at the root; the first that tells most does it best.
    let told = |place: &Place| {
        [&place.container, &place.pod, &place.job]
            .iter()
            .filter(|part| part.is_some())
            .count()
    };
    let best = places.iter().map(told).max().unwrap_or(0);
    let at = places.iter().position(|place| told(place) == best);
    at.map(|at| places.swap_remove(at)).unwrap_or_default()
}

fn of_path(path: &str) -> Place {
    let mut place = Place::default();
    let mut within = "";
    for folder in path.split('/') {
        for part in folder.split(".slice:") {
            let part = part.strip_suffix(".scope").unwrap_or(part);
            let part = part.strip_suffix(".slice").unwrap_or(part);
            if let Some(pod) = pod(part) {
                // What runs in a pod has nothing to do with a container around the kubelet.
                place = Place {
                    pod: Some(pod),
                    job: place.job,
                    ..Place::default()
                };
            } else if let Some((container, runtime)) = container(part, within) {
                place.container = Some(container);
                place.runtime = runtime;
            } else if let Some(job) = part.strip_prefix("job_").filter(|job| is_number(job)) {
                place.job = Some(job.to_owned());
            }
            within = part;
        }
    }
    place
}

/// The pod's UID, with the dashes that it has elsewhere. That of a static pod is a hash without any.
fn pod(part: &str) -> Option<String> {
    let at = part.rfind("pod")?;
    let begins = at == 0 || part[..at].ends_with('-');
    let uid = &part[at + 3..];
    let shaped =
        matches!(uid.len(), 32 | 36) && uid.bytes().all(|b| b.is_ascii_hexdigit() || b"-_".contains(&b));
    (begins && shaped).then(|| uid.replace('_', "-"))
}

/// A container's identity and runtime.
fn container(part: &str, within: &str) -> Option<(String, Option<&'static str>)> {
    let at = part.len().checked_sub(IDENTITY)?;
    let (front, identity) = (part.get(..at)?, part.get(at..)?);
    if !identity.bytes().all(|byte| byte.is_ascii_hexdigit()) {
        return None;
    }
    let name = front.strip_suffix(['-', ':']).unwrap_or(front);
    if name.ends_with("conmon") {
        return None;
    }
    let runtime = match if name.is_empty() { within } else { name } {
        "docker" => Some("docker"),
        "cri-containerd" | "containerd" | "nerdctl" => Some("containerd"),
        "crio" => Some("cri-o"),
        "libpod" | "libpod_parent" => Some("podman"),
        _ => None,
    };
    // Something in front that is not set apart is a longer number, and no identity.
    let apart = front.is_empty() || name.len() < front.len();
    apart.then(|| (identity.to_owned(), runtime))
}

fn is_number(text: &str) -> bool {
    !text.is_empty() && text.bytes().all(|byte| byte.is_ascii_digit())
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    const ID: &str = "4bc0a1f2d3e4958677869504a3b2c1d0e9f8a7b6c5d4e3f2a1b0c9d8e7f60514";
    const UID: &str = "2a6f1c3e-8f0b-4f5d-9b1a-7c2d3e4f5a6b";

    fn place(container: Option<&str>, runtime: Option<&'static str>, pod: Option<&str>) -> Place {
        Place {
            container: container.map(str::to_owned),
            runtime,
            pod: pod.map(str::to_owned),
            job: None,
        }
    }

    #[test]
    fn containers_and_pods_are_known_by_the_names_of_their_groups() {
        let uid = UID.replace('-', "_");
        let other = ID.replace('4', "5");
        for (path, right) in [
            (format!("/docker/{ID}"), place(Some(ID), Some("docker"), None)),
            (
                format!("/system.slice/docker-{ID}.scope"),
                place(Some(ID), Some("docker"), None),
            ),
            (
                format!(
                    "/kubepods.slice/kubepods-burstable.slice/kubepods-burstable-pod{uid}.slice/cri-containerd-{ID}.scope"
                ),
                place(Some(ID), Some("containerd"), Some(UID)),
            ),
            (
                format!("/kubepods.slice/kubepods-pod{uid}.slice/crio-{ID}.scope"),
                place(Some(ID), Some("cri-o"), Some(UID)),
            ),
            (
                format!("/kubepods/besteffort/pod{UID}/{ID}"),
                place(Some(ID), None, Some(UID)),
            ),
            (
                format!(
                    "/system.slice/containerd.service/kubepods-burstable-pod{uid}.slice:cri-containerd:{ID}"
                ),
                place(Some(ID), Some("containerd"), Some(UID)),
            ),
            (
                format!(
                    "/kubepods.slice/kubepods-burstable.slice/kubepods-burstable-pod{}.slice/cri-containerd-{ID}.scope",
                    "0".repeat(32)
                ),
                place(Some(ID), Some("containerd"), Some(&"0".repeat(32))),
            ),
            (
                format!("/machine.slice/libpod-{ID}.scope/container"),
                place(Some(ID), Some("podman"), None),
            ),
            (
                format!("/user.slice/user-1000.slice/user@1000.service/user.slice/libpod-{ID}.scope"),
                place(Some(ID), Some("podman"), None),
            ),
            // A watcher is not what it watches.
            (
                format!("/machine.slice/libpod-conmon-{ID}.scope"),
                Place::default(),
            ),
            // Kubernetes in a container of docker: the pod's container is what the process is in.
            (
                format!(
                    "/docker/{other}/kubelet.slice/kubelet-kubepods.slice/kubelet-kubepods-pod{uid}.slice/cri-containerd-{ID}.scope"
                ),
                place(Some(ID), Some("containerd"), Some(UID)),
            ),
            (
                format!("/docker/{other}/kubelet.slice/kubelet-kubepods-pod{uid}.slice"),
                place(None, None, Some(UID)),
            ),
            ("/../../system.slice/sshd.service".to_owned(), Place::default()),
            (format!("/user.slice/7{ID}"), Place::default()),
            ("/".to_owned(), Place::default()),
        ] {
            assert_eq!(of_cgroup(&format!("0::{path}\n")), right, "{path}");
        }
    }

    #[test]
    fn a_slurm_job_is_known_with_and_without_a_container() {
        for path in [
            "/system.slice/slurmstepd.scope/job_4711/step_0/user/task_3",
            "/slurm/uid_1000/job_4711/step_batch",
        ] {
            let right = Place {
                job: Some("4711".into()),
                ..Place::default()
            };
            assert_eq!(of_cgroup(&format!("0::{path}")), right);
        }
        assert_eq!(of_cgroup("0::/system.slice/job_queue.service"), Place::default());
        let both = of_cgroup(&format!(
            "0::/system.slice/slurmstepd.scope/job_1/step_0/docker-{ID}.scope"
        ));
        assert_eq!(
            (both.job.as_deref(), both.container.as_deref()),
            (Some("1"), Some(ID))
        );
    }

    #[test]
    fn of_several_hierarchies_the_one_that_tells_most_counts() {
        let text = format!("12:rdma:/\n11:pids:/docker/{ID}\n1:name=systemd:/kubepods/pod{UID}/{ID}\n0::/\n");
        assert_eq!(of_cgroup(&text), place(Some(ID), None, Some(UID)));
        assert_eq!(of_cgroup(""), Place::default());
    }

    proptest! {
        #[test]
        fn whatever_a_group_is_called_does_no_harm(text in ".{0,200}") {
            let _ = of_cgroup(&text);
        }

        #[test]
        fn a_container_is_found_wherever_it_is(
            id in "[0-9a-f]{64}",
            uid in "[0-9a-f]{8}-[0-9a-f]{4}-4[0-9a-f]{3}-[0-9a-f]{4}-[0-9a-f]{12}",
            above in prop::collection::vec("[a-z.@0-9]{1,12}", 0..4),
            systemd: bool,
        ) {
            let above = above.join("/");
            let path = if systemd {
                format!("/{above}/kubepods-pod{}.slice/crio-{id}.scope", uid.replace('-', "_"))
            } else {
                format!("/{above}/pod{uid}/{id}")
            };
            let place = of_cgroup(&format!("0::{path}"));
            prop_assert_eq!(place.container, Some(id));
            prop_assert_eq!(place.pod, Some(uid));
        }

        #[test]
        fn what_is_found_is_of_its_shape(path in "[a-z0-9:./_-]{0,160}") {
            let place = of_cgroup(&format!("0::{path}"));
            prop_assert!(place.container.is_none_or(|id| id.len() == IDENTITY && id.bytes().all(|b| b.is_ascii_hexdigit())));
            prop_assert!(place.pod.is_none_or(|uid| matches!(uid.len(), 32 | 36) && !uid.contains('_')));
            prop_assert!(place.job.is_none_or(|job| is_number(&job)));
        }
    }
}
