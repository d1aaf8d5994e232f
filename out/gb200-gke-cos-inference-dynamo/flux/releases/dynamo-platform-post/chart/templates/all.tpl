{{- range $path, $manifest := .Values.manifests }}
---
{{ $manifest }}
{{- end }}
