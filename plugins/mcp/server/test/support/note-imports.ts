// Run in a process of its own: says which packages a host with the tool server has imported, switched off, then switched on.
import { registerHooks } from 'node:module'
import type { Plugin } from '@svc/core'

const seen = new Set<string>()
registerHooks({
  resolve(specifier, context, next) {
    if (/^(@[^/]+\/)?[\w-]+/.test(specifier) && !specifier.startsWith('node:')) seen.add(specifier)
    return next(specifier, context)
  },
})
const { startHost } = await import('@svc/core')
const { default: use } = (await import('../../src/index.ts')) as { default: Plugin }
const reported = []
for (const enabled of [false, true]) {
  const host = await startHost({
    plugins: [{ use, name: 'mcp-server' }],
    config: { mcp: { server: { enabled } } },
    log: { destination: { write() {} } },
  })
  reported.push([...seen])
  await host.close()
}
process.stdout.write(JSON.stringify(reported))
