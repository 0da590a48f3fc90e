import { Socket } from 'node:net'
import process from 'node:process'
import { importFailed } from '../src/errors.ts'
import type { Plugin } from '../src/plugin.ts'
import { systemUse } from '../src/token.ts'
import { openChannel } from '../processes/channel.ts'
import { Shell } from './contract.ts'
import { createShell } from './shell.ts'
import { socketTransport } from '../processes/wire.ts'

// The entry of an isolated plugin's process: `isolate-child.ts <module URL> <plugin name>`, the line to the host at descriptor 3.
const LAST_MS = 2000
const [module = '', name = ''] = process.argv.slice(2)
const load = async (): Promise<Plugin> => {
  const { default: plugin } = await import(module).catch(error => Promise.reject(importFailed(name, error)))
  if (typeof plugin?.setup === 'function') return plugin
  throw importFailed(name, new TypeError('its default export is no plugin'))
}
const channel = openChannel(socketTransport(new Socket({ fd: 3 })), { name: 'svc', self: name })
const shell = createShell(channel, name, load)
channel.offer('shell', Shell, shell)

// Without its host it has nothing to live for, whatever it still holds open.
channel.signal.addEventListener('abort', () => {
  setTimeout(() => process.exit(0), LAST_MS).unref()
  void shell.close(systemUse(channel.signal)).finally(() => process.exit(0))
})
