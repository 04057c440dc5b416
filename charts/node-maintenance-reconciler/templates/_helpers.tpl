{{/* The labels of every object. */}}
{{- define "node-maintenance.labels" -}}
{{- include "node-maintenance.ownLabels" . }}
{{- with include "node-maintenance.commonLabels" . }}
{{ . }}
{{- end }}
{{- end }}

{{/* Those of the objects that Prometheus selects. */}}
{{- define "node-maintenance.monitoringLabels" -}}
{{- include "node-maintenance.ownLabels" . }}
{{- with merge dict .Values.monitoring.labels .Values.commonLabels }}
{{ toYaml . }}
{{- end }}
{{- end }}

{{/* Those that no value changes. */}}
{{- define "node-maintenance.ownLabels" -}}
app.kubernetes.io/part-of: node-maintenance-reconciler
app.kubernetes.io/managed-by: {{ .Release.Service }}
app.kubernetes.io/instance: {{ .Release.Name }}
helm.sh/chart: {{ printf "%s-%s" .Chart.Name .Chart.Version | replace "+" "_" }}
{{- end }}

{{/* Those that every object and every Pod has in addition. */}}
{{- define "node-maintenance.commonLabels" -}}
{{- with .Values.commonLabels }}{{ toYaml . }}{{ end }}
{{- end }}

{{/* Those that the reconciler's Pods have in addition. */}}
{{- define "node-maintenance.podLabels" -}}
{{- $found := dict }}
{{- if .Values.azure.workloadIdentity }}{{ $_ := set $found "azure.workload.identity/use" "true" }}{{ end }}
{{- with merge $found .Values.podLabels .Values.commonLabels }}{{ toYaml . }}{{ end }}
{{- end }}

{{/* The image, by its digest if it has one. */}}
{{- define "node-maintenance.image" -}}
{{- with .Values.image }}
{{- if .digest }}{{ .repository }}@{{ .digest }}{{ else }}{{ .repository }}:{{ .tag | default $.Chart.AppVersion }}{{ end }}
{{- end }}
{{- end }}

{{/* The settings as text. */}}
{{- define "node-maintenance.settings" -}}
{{- if .Values.settingsFile }}{{ .Values.settingsFile }}{{ else }}{{ toYaml .Values.settings }}{{ end }}
{{- end }}

{{/* The settings as JSON. */}}
{{- define "node-maintenance.settingsAsJson" -}}
{{- $settings := include "node-maintenance.settings" . | fromYaml }}
{{- with $settings.Error }}{{ fail (printf "settingsFile is not YAML: %s" .) }}{{ end }}
{{- toJson $settings }}
{{- end }}

{{/* keys.prefix of the settings, or its default. */}}
{{- define "node-maintenance.prefix" -}}
{{- $settings := include "node-maintenance.settingsAsJson" . | fromJson }}
{{- get ($settings.keys | default dict) "prefix" | default "node-maintenance.dev" }}
{{- end }}

{{/* Whether a feature keeps something by the settings: the root, and the feature's section. Empty: it does not. */}}
{{- define "node-maintenance.keeps" -}}
{{- $settings := include "node-maintenance.settingsAsJson" (index . 0) | fromJson }}
{{- $section := get $settings (index . 1) }}
{{- if eq (index . 1) "notify" }}
{{- /* Workflows are the section `profiles`, or the whole file. */}}
{{- $workflows := ternary $settings.profiles $settings (kindIs "map" $settings.profiles) }}
{{- if or $section (get ($workflows.instances | default dict) "notify") }}true{{ end }}
{{- else if not (regexMatch "^(0|(0+[dhms])+)$" (get ($section | default dict) "keep" | toString | trim)) }}true{{ end }}
{{- end }}

{{/* The annotations of the reconciler's ServiceAccount. */}}
{{- define "node-maintenance.accountAnnotations" -}}
{{- $found := dict }}
{{- with .Values.azure.clientId }}{{ $_ := set $found "azure.workload.identity/client-id" . }}{{ end }}
{{- with merge $found .Values.serviceAccount.annotations }}{{ toYaml . }}{{ end }}
{{- end }}
