// The Portkey gateway; it reads `--port=<n>` itself.
await import('@portkey-ai/gateway/build/start-server.js')
