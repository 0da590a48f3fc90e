import { once } from 'node:events'
import { createServer } from 'node:http'
import type { AddressInfo } from 'node:net'
import { fileURLToPath } from 'node:url'
import {
  type ConfigTree,
  definePlugin,
  type Manifest,
  type PluginEntry,
  type PluginReport,
  type RunningHost,
  startHost,
} from '@svc/core'
import { Isolation, Tools } from '@svc/core/contracts'
import { describeIsolated, isolate } from '@svc/runtime/isolation'
import { testContext } from '@svc/testing'
import { setTimeout as wait } from 'node:timers/promises'
import { Gong } from './hostile/gong.ts'
import { describeWith } from '../../../../../test/support/needs.ts'
import { pluginFolder } from '../../../../../test/support/plugin-folder.ts'

/** A group of tests that need bubblewrap and its namespaces; they are skipped with the reason where it is missing. */
export const withSandbox = (title: string, cases: () => void) => describeWith('bubblewrap', title, cases)

const POLICY = ['sandbox-process', 'isolation'].map(pluginFolder)
const FOLDER = fileURLToPath(new URL('hostile/', import.meta.url))
const REF = { name: 'svc-plugin-hostile', module: new URL('hostile/index.ts', import.meta.url).href }
const MANIFEST: Manifest = { api: 1, kind: 'tool', contributes: { tools: ['attack', 'extra-*'], peer_answers: ['flood'] } }

export interface HostileOptions {
  readonly permissions?: Manifest['permissions']
  readonly config?: ConfigTree
  /** Plugins that hold it; default: the sandbox and the policy. */
  readonly policy?: readonly URL[]
  readonly beside?: readonly PluginEntry[]
}

let declares: Promise<unknown> | undefined

async function declaredBy(): Promise<unknown> {
  await using host = await startHost({ plugins: POLICY })
  return await describeIsolated({ ...REF, confinement: { folder: FOLDER, permissions: {} } }, host.service(Isolation))
}

/** The hostile plugin in a host, held by the sandbox. */
export async function openHostile({
  permissions = {},
  config = {},
  policy = POLICY,
  beside = [],
}: HostileOptions = {}): Promise<Hostile> {
  const lines: string[] = []
  const listeners = new Set<() => void>()
  const write = (line: string) => {
    lines.push(line)
    for (const listener of listeners) listener()
  }
  const gong = definePlugin({
    provides: Gong,
    setup: scope => ({ strike: async ctx => String(await scope.hooks.struck({}, ctx)) }),
  })
  const known = await (declares ??= declaredBy())
  const held = { folder: FOLDER, permissions: { hooks: ['gong.struck'], ...permissions } }
  const use = await isolate({ ...REF, confinement: held }, {}, known)
  const entry: PluginEntry = { use, name: REF.name, manifest: MANIFEST }
  const host = await startHost({
    plugins: [...policy, ...beside, { use: gong, name: 'gong' }, entry],
    config: { host: { tap_timeout_ms: 300 }, ...config },
    log: { destination: { write } },
  })
  const report = () => host.report().plugins.find(plugin => plugin.name === REF.name)!
  return {
    host,
    lines,
    report,
    async attack(what, given = '') {
      const { content } = await host.slot(Tools).get('attack')!.call({ what, with: given }, testContext())
      const [part] = content
      return part?.type === 'text' ? part.text : ''
    },
    async until(text) {
      while (!lines.some(line => line.includes(text)))
        await new Promise<void>(resolve => {
          const heard = () => {
            listeners.delete(heard)
            resolve()
          }
          listeners.add(heard)
        })
    },
    async back() {
      while (!host.slot(Tools).has('attack')) await wait(5)
    },
    [Symbol.asyncDispose]: () => host.close(),
  }
}

export interface Hostile extends AsyncDisposable {
  readonly host: RunningHost
  /** All that was logged. */
  readonly lines: readonly string[]
  report(): PluginReport
  /** Lets the plugin try something; answers with what it got. */
  attack(what: string, given?: string): Promise<string>
  /** Waits for a line of the log that holds this. */
  until(text: string): Promise<void>
  /** Waits until what it adds is there. */
  back(): Promise<void>
}

/** A server of this machine that counts who reaches it. */
export async function openCanary() {
  let reached = 0
  const server = createServer((_asked, answer) => {
    reached++
    answer.end('the canary sings')
  }).listen(0, '127.0.0.1')
  await once(server, 'listening')
  return {
    port: (server.address() as AddressInfo).port,
    reached: () => reached,
    async [Symbol.asyncDispose]() {
      server.closeAllConnections()
      await new Promise(resolve => server.close(resolve))
    },
  }
}

/** What this work fails with: its code and its words. */
export const failed = (work: Promise<unknown>): Promise<string> =>
  work.then(
    value => Promise.reject(new Error(`it did not fail, it answered ${String(value)}`)),
    (error: Failure) =>
      [error, ...(error.problems ?? [])].map(problem => `${problem.code} ${problem.message} ${problem.hint}`).join('\n')
  )

interface Failure {
  readonly code?: string
  readonly message: string
  readonly hint?: string
  readonly problems?: readonly Failure[]
}
