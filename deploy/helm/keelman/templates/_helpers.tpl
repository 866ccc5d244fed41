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

{{/* The pod that creates the release's Secrets. */}}
{{- define "keelman.secretsPod" -}}
metadata:
  labels: {{- include "keelman.selector" (list . "secrets") | nindent 4 }}
spec:
  serviceAccountName: {{ include "keelman.name" . }}-secrets
  restartPolicy: OnFailure
  imagePullSecrets: {{- toYaml .Values.imagePullSecrets | nindent 4 }}
  containers:
    - name: secrets
      image: {{ include "keelman.image" . }}
      imagePullPolicy: {{ .Values.image.pullPolicy }}
      args:
        - state
        - kubernetes-secrets
        - --release={{ include "keelman.name" . }}
        {{- if not .Values.state.keySecret }}
        - --key={{ include "keelman.keySecret" . }}
        {{- end }}
        {{- if not .Values.database.urlSecret }}
        - --database={{ include "keelman.urlSecret" . }}
        - --database-host={{ include "keelman.name" . }}-postgresql.{{ .Release.Namespace }}.svc
        {{- end }}
      resources:
        requests: {cpu: 50m, memory: 64Mi}
      securityContext: {{- include "keelman.confined" . | nindent 8 }}
      volumeMounts:
        - {name: home, mountPath: /var/lib/keelman}
        - {name: tmp, mountPath: /tmp}
  volumes:
    - {name: home, emptyDir: {}}
    - {name: tmp, emptyDir: {}}
{{- end -}}
