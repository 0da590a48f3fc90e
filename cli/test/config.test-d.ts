// Compiled by `tsc -p .`, never run: in an editor a wrong key or value of a known plugin is red.
import { defineConfig } from '@svc/cli'

defineConfig({
  server: { port: 9000, workers: 1, auth: { enabled: false } },
  chat: { timeout_ms: 1 },
  log: { level: 'debug' },
  providers: { local: { type: 'local' } },
  mcp: { clients: [{ name: 'files', command: 'npx' }] },
  plugins: ['svc-plugin-weather', { use: '@svc/plugin-metrics', enabled: false }],
})

// @ts-expect-error a port is a number
defineConfig({ server: { port: '9000' } })
// @ts-expect-error there is no key "prot"
defineConfig({ server: { prot: 9000 } })
// @ts-expect-error there is no section "sever"
defineConfig({ sever: { port: 9000 } })
// @ts-expect-error no such level
defineConfig({ log: { level: 'loud' } })
// @ts-expect-error a documented key that has no owner yet is typed as well
defineConfig({ server: { workers: 'all' } })
// @ts-expect-error a client needs a name
defineConfig({ mcp: { clients: [{ url: 'http://127.0.0.1' }] } })
