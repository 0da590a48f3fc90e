import assert from 'node:assert/strict'
import type { AnySlot, RunningHost, SlotToken } from '@svc/core'
import {
  type AuthScheme,
  AuthSchemes,
  type Provider,
  Providers,
  Routes,
  Store,
  type Tool,
  Tools,
  type WorkflowNode,
  WorkflowNodes,
} from '@svc/core/contracts'
import { authKit } from './auth-kit.ts'
import { skipped } from './kit-case.ts'
import type { KitCase } from './kit.ts'
import { authCases } from './made-up-auth.ts'
import { nodeCases } from './made-up-nodes.ts'
import { providerCases } from './made-up-providers.ts'
import { routeCases } from './made-up-routes.ts'
import { toolCases } from './made-up-tools.ts'
import { nodeKit } from './node-kit.ts'
import { openPlugin, type Thing, thingOf } from './plugin-host.ts'
import type { PluginPackage } from './plugin-package.ts'
import type { PluginKitOptions } from './plugin-samples.ts'
import { providerKit } from './provider-kit.ts'
import { storeKit } from './store-kit.ts'
import { toolKit } from './tool-kit.ts'

/** The cases of each thing that the plugin adds: its kit where its author gives samples, and what can be asked with made-up data. */
export function thingCases(found: PluginPackage, options: PluginKitOptions, host: RunningHost): KitCase[] {
  const each = <T>(slot: SlotToken<T>, cases: (thing: Thing<T>) => KitCase[]) =>
    host
      .slot(slot)
      .entries()
      .filter(([name]) => host.slot(slot).owner(name) === found.info.name)
      .flatMap(([name, seen]) => {
        const reached = new Set<string>()
        return named(slot, name, reached, cases(thingOf(found, options, slot, name, seen, reached)))
      })
  return [
    ...each(Tools, ofTool),
    ...each(Providers, ofProvider),
    ...each(WorkflowNodes, ofNode),
    ...each(AuthSchemes, ofAuth),
    ...each(Routes, routeCases),
    ...(found.plugin?.provides?.name === Store.name ? ofStore(found, options) : []),
  ]
}

/** Each case fails, too, for what the plugin reached for meanwhile and does not declare. */
const named = (slot: AnySlot, name: string, reached: Set<string>, cases: readonly KitCase[]): KitCase[] =>
  cases.map(one => ({
    ...one,
    title: `${slot.name} ${name}: ${one.title}`,
    async run() {
      reached.clear()
      await one.run.call(this)
      assert.deepEqual([...reached], [], [...reached].join('\n'))
    },
  }))

const missing = (what: string): KitCase => skipped(`passes the ${what}`, `samples of it in test/samples`)

function ofTool(thing: Thing<Tool>): KitCase[] {
  const { name, options, open } = thing
  const samples = options.tools?.[name]
  const subject = async () => {
    const { item, close } = await open()
    return { tool: item, name, close }
  }
  return [...toolCases(thing, subject), ...(samples ? toolKit(subject, samples) : [missing('toolKit')])]
}

function ofProvider(thing: Thing<Provider>): KitCase[] {
  const { options, open } = thing
  const made = providerCases(thing)
  if (!options.provider) return [...made, missing('providerKit')]
  const { connections, ...samples } = options.provider
  const subject = async () => {
    const { item, close } = await open()
    return { provider: item, close, ...(connections ? { connections } : {}) }
  }
  return [...made, ...providerKit(subject, samples, samples)]
}

function ofNode(thing: Thing<WorkflowNode>): KitCase[] {
  const { name, options, open } = thing
  const samples = options.nodes?.[name]
  const subject = async () => {
    const { item, close } = await open()
    return { node: item, close }
  }
  return [...nodeCases(thing), ...(samples ? nodeKit(subject, samples) : [missing('nodeKit')])]
}

function ofAuth(thing: Thing<AuthScheme>): KitCase[] {
  const { name, options, open } = thing
  const credentials = options.auth?.[name]
  const subject = async () => {
    const { item, close } = await open()
    return { scheme: item, close, ...credentials! }
  }
  return [...authCases(thing), ...(credentials ? authKit(subject) : [missing('authKit')])]
}

/** A store's data is gone with its host, unless its author says that it lasts. */
function ofStore(found: PluginPackage, options: PluginKitOptions): KitCase[] {
  const start = () => openPlugin(found, options, { strict: false })
  const open = async () => {
    let run = await start()
    const anew = async () => {
      await run.close()
      run = await start()
      return run.host.service(Store)
    }
    return {
      store: run.host.service(Store),
      ...(options.lasts ? { reopen: anew } : {}),
      [Symbol.asyncDispose]: () => run.close(),
    }
  }
  return storeKit(open).map(one => ({ ...one, title: `store: ${one.title}` }))
}
