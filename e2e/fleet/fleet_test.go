// Package fleet tests what examples/fleet has besides its Caddyfile: the files that others read.
package fleet

import (
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/compose-spec/compose-go/v2/cli"
	"github.com/compose-spec/compose-go/v2/types"
	"github.com/google/go-cmp/cmp"
	apps "k8s.io/api/apps/v1"
	core "k8s.io/api/core/v1"
	networking "k8s.io/api/networking/v1"
	policy "k8s.io/api/policy/v1"
	"sigs.k8s.io/kustomize/api/krusty"
	"sigs.k8s.io/kustomize/kyaml/filesys"
	"sigs.k8s.io/yaml"
)

const example = "../../examples/fleet"

// unresolved is in a warning of HAProxy about the name of an edge, which Docker alone resolves.
const unresolved = "could not resolve address 'edge"

func lookHAProxy(t *testing.T) string {
	t.Helper()
	program, err := exec.LookPath("haproxy")
	if err != nil {
		program, err = exec.LookPath("/usr/sbin/haproxy")
	}
	if err != nil && os.Getenv("LYCHGATE_TEST_SERVERS") == "" {
		t.Skip("needs Debian's package haproxy")
	}
	return program
}

// The load balancer of the fleet to copy starts.
func TestHAProxy(t *testing.T) {
	program := lookHAProxy(t)
	output, err := exec.CommandContext(t.Context(), program, "-c", "-f", example+"/haproxy.cfg").CombinedOutput()
	if err != nil {
		t.Errorf("haproxy -c = %v, %s, want no error", err, output)
	}
	for line := range strings.Lines(string(output)) {
		if strings.Contains(line, "[WARNING]") && !strings.Contains(line, unresolved) {
			t.Errorf("haproxy -c warns: %s", line)
		}
	}
}

// Docker Compose understands both files. One edge builds the image of all: of several that export it at once, one fails. The others
// start after it.
func TestComposeUnderstandsBothFiles(t *testing.T) {
	environment := []string{"ACME_EMAIL=ops@example.com", "GHOST_URL=https://news.example.com", "ADDRESS=10.0.0.11", "BALANCERS=10.0.0.5/32", "REDIS_ADDRESS=10.0.0.7:6379"}
	for file, want := range map[string]map[string]bool{
		"compose.yaml":      {"edge1": true, "edge2": false, "edge3": false},
		"compose.edge.yaml": {"edge": true},
	} {
		options, err := cli.NewProjectOptions([]string{filepath.Join(example, file)}, cli.WithEnv(environment))
		if err != nil {
			t.Fatalf("%s: %v", file, err)
		}
		project, err := options.LoadProject(t.Context())
		if err != nil {
			t.Fatalf("%s: %v", file, err)
		}
		got := make(map[string]bool)
		for name, service := range project.Services {
			if service.Image == "lychgate-edge" {
				got[name] = service.Build != nil
			}
		}
		if diff := cmp.Diff(want, got); diff != "" {
			t.Errorf("%s: services with the image, and whether they build it (-want +got):\n%s", file, diff)
		}
		for name := range want { // one edge alone makes what all share
			if dependency := project.Services[name].DependsOn["edge1"]; strings.TrimPrefix(name, "edge") > "1" && dependency.Condition != types.ServiceConditionHealthy {
				t.Errorf("%s: %s starts when edge1 is %q, want %q", file, name, dependency.Condition, types.ServiceConditionHealthy)
			}
		}
	}
}

// What `kubectl apply -k` sends to a cluster has no field that Kubernetes does not know, and its parts refer to
// parts that are there.
func TestKubernetesKnowsAllFields(t *testing.T) {
	folder := t.TempDir()
	if err := os.CopyFS(folder, os.DirFS(example)); err != nil {
		t.Fatalf("os.CopyFS: %v", err)
	}
	if err := os.MkdirAll(filepath.Join(folder, "secrets"), 0o700); err != nil {
		t.Fatalf("os.MkdirAll: %v", err)
	}
	for _, name := range []string{"lychgate_dsn", "lychgate_redis", "lychgate_secret", "redis_password", "certificates_key"} { // as README.md says
		if err := os.WriteFile(filepath.Join(folder, "secrets", name), []byte(name), 0o600); err != nil {
			t.Fatalf("os.WriteFile: %v", err)
		}
	}
	built, err := krusty.MakeKustomizer(krusty.MakeDefaultOptions()).Run(filesys.MakeFsOnDisk(), folder)
	if err != nil {
		t.Fatalf("kustomize: %v", err)
	}
	var (
		deployment apps.Deployment
		budget     policy.PodDisruptionBudget
		service    core.Service
		network    networking.NetworkPolicy
		namespace  core.Namespace
		files      core.ConfigMap
		secret     core.Secret
	)
	kinds := map[string]any{
		"Deployment": &deployment, "PodDisruptionBudget": &budget, "Service": &service, "NetworkPolicy": &network,
		"Namespace": &namespace, "ConfigMap": &files, "Secret": &secret,
	}
	var got []string
	for _, resource := range built.Resources() {
		got = append(got, resource.GetKind())
		text, err := resource.AsYAML()
		if err != nil {
			t.Fatalf("resource.AsYAML: %v", err)
		}
		if err := yaml.UnmarshalStrict(text, kinds[resource.GetKind()]); err != nil {
			t.Errorf("%s: %v", resource.CurId(), err)
		}
	}
	slices.Sort(got)
	if diff := cmp.Diff([]string{"ConfigMap", "Deployment", "Namespace", "NetworkPolicy", "PodDisruptionBudget", "Secret", "Service"}, got); diff != "" {
		t.Fatalf("resources (-want +got):\n%s", diff)
	}

	pod := deployment.Spec.Template
	for name, selector := range map[string]map[string]string{
		"the deployment": deployment.Spec.Selector.MatchLabels, "the budget": budget.Spec.Selector.MatchLabels,
		"the service": service.Spec.Selector, "the network policy": network.Spec.PodSelector.MatchLabels,
		"the spread": pod.Spec.TopologySpreadConstraints[0].LabelSelector.MatchLabels,
	} {
		if diff := cmp.Diff(pod.Labels, selector); diff != "" {
			t.Errorf("%s selects other pods (-labels +selector):\n%s", name, diff)
		}
	}
	edge := pod.Spec.Containers[0]
	ports := make(map[string]bool)
	for _, port := range edge.Ports {
		ports[port.Name] = true
	}
	var named []string
	for _, port := range service.Spec.Ports {
		named = append(named, port.TargetPort.String())
	}
	for _, probe := range []*core.Probe{edge.StartupProbe, edge.ReadinessProbe} {
		named = append(named, probe.HTTPGet.Port.String())
	}
	named = append(named, edge.LivenessProbe.TCPSocket.Port.String())
	for _, rule := range network.Spec.Ingress {
		for _, port := range rule.Ports {
			named = append(named, port.Port.String())
		}
	}
	for _, name := range named {
		if !ports[name] {
			t.Errorf("a port %s is named, which the edge does not have", name)
		}
	}
	volumes := make(map[string]bool)
	for _, volume := range pod.Spec.Volumes {
		volumes[volume.Name] = true
		if volume.ConfigMap != nil && volume.ConfigMap.Name != files.Name || volume.Secret != nil && volume.Secret.SecretName != secret.Name {
			t.Errorf("volume %s is of something that is not there, want %s or %s", volume.Name, files.Name, secret.Name)
		}
	}
	for _, mount := range edge.VolumeMounts {
		if !volumes[mount.Name] {
			t.Errorf("a volume %s is mounted, which is not there", mount.Name)
		}
	}
}
