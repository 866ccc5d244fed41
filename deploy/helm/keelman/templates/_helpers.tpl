{{/* The release's name for its objects; short, for pods' names begin with it. */}}
{{- define "keelman.name" -}}
{{- .Release.Name | trunc 40 | trimSuffix "-" -}}
{{- end -}}

{{- define "keelman.image" -}}
{{- printf "%s:%s" .Values.image.repository (.Values.image.tag | default .Chart.AppVersion) -}}
{{- end -}}

{{/* Labels by which services and policies choose pods: a list of the root and the component's name. */}}
{{- define "keelman.selector" -}}
app.kubernetes.io/name: keelman
app.kubernetes.io/instance: {{ (index . 0).Release.Name }}
app.kubernetes.io/component: {{ index . 1 }}
{{- end -}}

{{- define "keelman.labels" -}}
{{ include "keelman.selector" . }}
app.kubernetes.io/version: {{ (index . 0).Chart.AppVersion | quote }}
app.kubernetes.io/managed-by: {{ (index . 0).Release.Service }}
helm.sh/chart: {{ (index . 0).Chart.Name }}-{{ (index . 0).Chart.Version }}
{{- end -}}

{{/* Further settings as environment variables: a list of the service's name and the settings. */}}
{{- define "keelman.settings" -}}
{{- $service := index . 0 -}}
{{- range $name, $value := index . 1 }}
- name: KEELMAN_{{ $service | upper }}_{{ $name | upper }}
  value: {{ $value | toString | quote }}
{{- end -}}
{{- end -}}

{{- define "keelman.keySecret" -}}
{{- .Values.state.keySecret | default (printf "%s-key" (include "keelman.name" .)) -}}
{{- end -}}

{{- define "keelman.urlSecret" -}}
{{- .Values.database.urlSecret | default (printf "%s-database" (include "keelman.name" .)) -}}
{{- end -}}

{{- define "keelman.stateAddress" -}}
{{- printf "%s-state.%s.svc:7410" (include "keelman.name" .) .Release.Namespace -}}
{{- end -}}

{{/* What no container of the plane needs, it does not have. */}}
{{- define "keelman.confined" -}}
allowPrivilegeEscalation: false
capabilities: {drop: [ALL]}
readOnlyRootFilesystem: true
runAsNonRoot: true
runAsUser: 7400
seccompProfile: {type: RuntimeDefault}
{{- end -}}
