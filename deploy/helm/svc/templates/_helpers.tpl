{{- define "svc.labels" -}}
app.kubernetes.io/name: svc
app.kubernetes.io/instance: {{ .Release.Name }}
{{- end }}

{{- define "svc.image" -}}
{{ .Values.image.repository }}:{{ .Values.image.tag | default .Chart.AppVersion }}
{{- end }}

{{/* The variables of the servers and of the migration. */}}
{{- define "svc.env" -}}
- name: SVC_STORE__URL
  value: {{ required "store.url is required" .Values.store.url | quote }}
{{- with .Values.store.directUrl }}
- name: SVC_STORE__DIRECT_URL
  value: {{ . | quote }}
{{- end }}
- name: SVC_STORE__SCHEMA
  value: {{ .Values.store.schema | quote }}
- name: SVC_STORE__PASSWORD_FILE
  value: /run/secrets/svc/db-password
- name: SVC_STORE__MIGRATE
  value: 'false'
{{- end }}

{{- define "svc.secrets" -}}
- name: secrets
  secret:
    secretName: {{ .Values.secret }}
    defaultMode: 0440
{{- end }}
