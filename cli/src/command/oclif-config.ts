import { fileURLToPath } from 'node:url'
import { type Interfaces, Plugin } from '@oclif/core'

/** What a command class is run with where no command line of svc is: a program "svc" without commands. */
export async function oclifConfig(): Promise<Interfaces.LoadOptions> {
  const root = fileURLToPath(new URL('.', import.meta.url))
  const pjson = { name: 'svc', version: '0.0.0', oclif: { bin: 'svc', topicSeparator: ' ' } }
  const plugin = new Plugin({ root, isRoot: true, ignoreManifest: true, pjson: pjson as never })
  await plugin.load()
  return { root, plugins: new Map([[plugin.name, plugin]]) }
}
