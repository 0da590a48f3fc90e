import { Socket } from 'node:net'
import process from 'node:process'
import { type Plugin, systemContext } from '@svc/core'
import { withHostPackages } from '@svc/core/config'
import { importFailed, placeInStack } from '@svc/core/internal'
import { openChannel } from '../processes/channel.ts'
import { PLUGIN_MESSAGE_BUDGET, MAX_PLUGIN_MESSAGE, HostBridge, PluginRunner, TaskRunner } from './contract.ts'
import { otherPortOf, type OwnConfig, settingOf } from './configured-servers.ts'
import { undeclared, undeclaredPort } from './errors.ts'
import { LOOKED_AT, openGuard } from './guard.ts'
import { watchHandles } from './open-handles.ts'
import { createPluginRunner } from './plugin-runner.ts'
import type { TaskRun } from './task.ts'
import { socketTransport } from '../processes/wire.ts'

// The entry of an isolated plugin's process: `isolate-child.ts <module URL> <plugin name> [<task URL>]`. Descriptor 3 is the
// channel to the host.
const LAST_MS = 2000
/** The code of svc, whose handles are not the plugin's. */
const OWN_FOLDERS = [new URL('..', import.meta.url), new URL('.', import.meta.resolve('@svc/core'))].map(one => one.pathname)
const [module = '', name = '', task] = process.argv.slice(2)
const load = async (): Promise<Plugin> => {
  await guarded
  const { default: plugin } = await withHostPackages(() => import(module), { place: module }).catch(error =>
    Promise.reject(importFailed(name, error, placeInStack(error)))
  )
  if (typeof plugin?.setup === 'function') return Object.assign({ requires: {}, optional: {} }, plugin)
  throw importFailed(name, new TypeError('its default export is not a plugin'))
}
// Sending fails here with the place, before the host would kill this process for it.
const limits = { mostSent: MAX_PLUGIN_MESSAGE, budgetSent: PLUGIN_MESSAGE_BUDGET }
const channel = openChannel(socketTransport(new Socket({ fd: 3 }), limits), { name: 'svc', self: name, sendsStacks: true })
const host = channel.reach('host_bridge', HostBridge)
// A host that only reads the declarations ignores these reports.
let config: OwnConfig = { value: undefined }
const guarded = openGuard(module, {
  describe: place => {
    const other = otherPortOf(place, config)
    return other === undefined ? undeclared('network', place, settingOf(place, config)) : undeclaredPort(place, other)
  },
  refused: (kind, what) => void host.refused(kind, what, systemContext(channel.signal)).catch(() => {}),
  looked: (variable, by) => void host.log('debug', { variable, by }, LOOKED_AT, systemContext(channel.signal)).catch(() => {}),
})
const runner = createPluginRunner(channel, name, load, {
  watch: () => watchHandles(OWN_FOLDERS),
  configured: own => (config = own),
})
channel.offer('plugin_runner', PluginRunner, runner)
if (task !== undefined)
  channel.offer('task', TaskRunner, {
    async run(input, ctx) {
      await guarded
      const { run } = (await import(task)) as { run: TaskRun }
      return run(module, input, channel, ctx)
    },
  })

// Without its host the process ends, whatever is still open.
channel.signal.addEventListener('abort', () => {
  setTimeout(() => process.exit(0), LAST_MS).unref()
  void runner.close(systemContext(channel.signal)).finally(() => process.exit(0))
})
