{{/* The name of everything: the release's, with karve in it. */}}
{{- define "karve.name" -}}
{{- if .Values.fullnameOverride -}}
{{- .Values.fullnameOverride | trunc 52 | trimSuffix "-" -}}
{{- else if contains "karve" .Release.Name -}}
{{- .Release.Name | trunc 52 | trimSuffix "-" -}}
{{- else -}}
{{- printf "%s-karve" (.Release.Name | trunc 46 | trimSuffix "-") -}}
{{- end -}}
{{- end -}}

{{- define "karve.serviceAccount" -}}
{{- .Values.serviceAccount.name | default (include "karve.name" .) -}}
{{- end -}}

{{/* What the pods of one release have and those of no other. It cannot change in an upgrade. */}}
{{- define "karve.selector" -}}
app.kubernetes.io/name: karve
app.kubernetes.io/instance: {{ .Release.Name }}
app.kubernetes.io/component: controller
{{- end -}}

{{- define "karve.labels" -}}
{{ include "karve.selector" . }}
app.kubernetes.io/part-of: karve
app.kubernetes.io/version: {{ .Chart.AppVersion | quote }}
app.kubernetes.io/managed-by: {{ .Release.Service }}
helm.sh/chart: {{ printf "%s-%s" .Chart.Name .Chart.Version | replace "+" "_" }}
{{- end -}}

{{- define "karve.image" -}}
{{- if .Values.image.digest -}}
{{ .Values.image.repository }}@{{ .Values.image.digest }}
{{- else -}}
{{ .Values.image.repository }}:{{ .Values.image.tag | default .Chart.AppVersion }}
{{- end -}}
{{- end -}}

{{/* The extender's: its name, its account, and what its pods alone have. */}}
{{- define "karve.extender" -}}
{{- printf "%s-extender" (include "karve.name" .) -}}
{{- end -}}

{{- define "karve.extenderSelector" -}}
{{- include "karve.selector" . | replace "component: controller" "component: extender" -}}
{{- end -}}

{{- define "karve.extenderLabels" -}}
{{- include "karve.labels" . | replace "component: controller" "component: extender" -}}
{{- end -}}

{{/* Who looks images up: the accounts of the controller and of the extender, as subjects of a binding. */}}
{{- define "karve.imageSubjects" -}}
- kind: ServiceAccount
  name: {{ include "karve.serviceAccount" . }}
  namespace: {{ .Release.Namespace }}
{{- if .Values.extender.enabled }}
- kind: ServiceAccount
  name: {{ include "karve.extender" . }}
  namespace: {{ .Release.Namespace }}
{{- end }}
{{- end -}}

{{/* Flags about images, which the controller and the extender share. */}}
{{- define "karve.imageArgs" -}}
- --image-compatibility={{ .Values.images.compatibility }}
- --on-resolve-error={{ .Values.images.onResolveError }}
- --nfg-mode={{ .Values.images.groups }}
- --pull-secrets={{ not (empty .Values.images.pullSecretNamespaces) }}
{{- with .Values.images.allowedRegistries }}
- --allowed-registries={{ join "," . }}
{{- end }}
{{- if .Values.images.registryConfigSecret }}
- --registry-config=/etc/karve/registry/.dockerconfigjson
{{- end }}
{{- end -}}
