import { existsSync, statSync } from 'node:fs'
import { join } from 'node:path'
import { setTimeout } from 'node:timers/promises'
import { clipped, oneLine, table, visible } from '@svc/cli/command'
import { abortOnInterrupt, endUnchanged, findSettings, fromCaller, here, INTERRUPTED, setHome } from '@svc/cli/program'
import { readManifest, shownPath, systemContext } from '@svc/core'
import { findServers } from '@svc/runtime'
import { joinedValues } from '@svc/runtime/isolation'
import {
  changeLock,
  filesMissing,
  type Lock,
  type LockedPlugin,
  packSet,
  pluginFolder,
  planChange,
  readLock,
  searchPlugins,
  sweepSets,
} from '../../set.ts'
import { consent, keyHint, refused, runChange, servedBy, printSuccess, takenFacts } from './change.ts'
import { openProgress } from './progress.ts'
import { type ConfiguredAccess, newValues } from './configured-access.ts'
import { newValueWords } from './proposal-text.ts'
import { accessWith, askServers } from './server-settings.ts'
import { named } from './install.ts'
import { switchInEffect } from './proposals.ts'
import { tryChange } from './take-up.ts'

export interface SwitchAsked {
  readonly names: readonly string[]
  readonly enabled: boolean
  readonly json: boolean
  readonly config?: string | undefined
}

/** `svc plugins enable` and `disable`; resolves with the exit code. */
export async function switchPlugins({ names, enabled, ...asked }: SwitchAsked): Promise<number> {
  using interrupt = abortOnInterrupt()
  using progress = openProgress({ quiet: asked.json })
  const home = setHome()
  const before = await readLock(home)
  for (const name of names) named(before.plugins, name)
  const word = enabled ? 'enabled' : 'disabled'
  const facts = { [word]: names }
  if (names.every(name => named(before.plugins, name).enabled === enabled))
    return printSuccess(asked, { text: `already ${word}: ${names.join(', ')}`, facts: { ...facts, servers: [] } })
  const place = { config: asked.config, signal: interrupt.signal, report: progress.report }
  const taken = await switchInEffect(before, { names, enabled }, place)
  progress.clear()
  if (taken.problems.length === 0 && !interrupt.signal.aborted)
    return printSuccess(asked, {
      text: `${word} ${names.join(', ')}; ${servedBy(taken)}`,
      facts: { ...facts, ...takenFacts(taken) },
    })
  if (interrupt.signal.aborted) return endUnchanged()
  const items = names.map(name => ({ name }))
  return refused(
    asked,
    taken.problems.map(problem =>
      enabled || problem.code !== 'CONFIG_UNKNOWN_KEY'
        ? problem
        : Object.assign(problem, { hint: keyHint(String(problem.details.path), problem.where, items) })
    )
  )
}

export interface AcceptAsked {
  /** Empty: all. */
  readonly names: readonly string[]
  readonly yes: boolean
  readonly json: boolean
  readonly config?: string | undefined
}

/** `svc plugins accept`: accepts the values that the configuration now gives to permissions; resolves with the exit code. */
export async function acceptValues({ names, yes, ...asked }: AcceptAsked): Promise<number> {
  using interrupt = abortOnInterrupt()
  using progress = openProgress({ quiet: asked.json })
  const { signal } = interrupt
  const before = await readLock(setHome())
  const chosen = names.length === 0 ? before.plugins : names.map(name => named(before.plugins, name))
  const found = await newAccess(chosen, before, { config: asked.config, signal })
  const facts = { plugins: found.map(({ plugin, access }) => ({ name: plugin.name, new_permission_values: newValues(access) })) }
  if (found.length === 0)
    return printSuccess(asked, {
      text: 'nothing to accept in this configuration; --config names another',
      facts: { ...facts, servers: [] },
    })
  const stream = asked.json ? process.stderr : process.stdout
  if (!(asked.json && yes)) stream.write(`${found.map(accessText).join('\n\n')}\n\n`)
  if (!yes && !(await consent('Accept?', 'accept', signal).catch(declinedAt(signal)))) {
    if (signal.aborted) return endUnchanged()
    process.stderr.write('nothing was changed\n')
    return 1
  }
  const taking = {
    config: asked.config,
    before,
    signal,
    report: (step: 'reload' | 'start' | 'wait') => progress.report({ step }),
  }
  const accept = (lock: Lock): Lock => ({ ...lock, plugins: lock.plugins.map(plugin => accepted(plugin, found)) })
  const taken = await tryChange(here().home, taking, holds => changeLock(setHome(), accept, holds))
  progress.clear()
  if (signal.aborted) return endUnchanged()
  if (taken.problems.length > 0) return refused(asked, taken.problems)
  const text = `accepted for ${found.map(({ plugin }) => plugin.name).join(', ')}; ${servedBy(taken)}`
  return printSuccess(asked, { text, facts: { ...facts, ...takenFacts(taken) } })
}

/** Ctrl-C at the question declines. */
const declinedAt = (signal: AbortSignal) => (error: unknown) => {
  if (!signal.aborted) throw error
  return false
}

interface AccessChange {
  readonly plugin: LockedPlugin
  readonly access: ConfiguredAccess
}

/** The plugins whose permissions have values that are not accepted. */
async function newAccess(
  plugins: readonly LockedPlugin[],
  lock: Lock,
  { config, signal }: { readonly config: string | undefined; readonly signal: AbortSignal }
): Promise<AccessChange[]> {
  const { value } = await findSettings(config === undefined ? {} : { config })
  const requests = await Promise.all(
    plugins.map(async plugin => {
      const file = join(pluginFolder(setHome(), lock, plugin), 'package.json')
      if (!existsSync(file)) throw filesMissing(plugin.name, 'its files do not exist')
      const { manifest } = await readManifest(file)
      return { manifest, permissions: plugin.permissions, plugin }
    })
  )
  const access = accessWith(await askServers(requests, signal), { requests, config: value, isNamed: config !== undefined })
  const all = requests.map(request => ({ plugin: request.plugin, access: access(request, request.plugin) }))
  return all.filter(({ access }) => newValueWords(access).length > 0)
}

const accessText = ({ plugin, access }: AccessChange) =>
  [
    `${plugin.name} ${plugin.version}`,
    ...newValueWords(access).map((word, at) => `  ${(at === 0 ? 'may now' : '').padEnd(8)}  ${visible(word)}`),
  ].join('\n')

function accepted(plugin: LockedPlugin, found: readonly AccessChange[]): LockedPlugin {
  const access = found.find(change => change.plugin.name === plugin.name)?.access
  return access === undefined ? plugin : { ...plugin, values: joinedValues(access.accepted, access.values) }
}

export interface UninstallAsked {
  readonly names: readonly string[]
  readonly json: boolean
  readonly config?: string | undefined
}

/** `svc plugins uninstall`: removes plugins, and deletes their files when no worker uses them. */
export async function uninstallPlugins({ names, ...asked }: UninstallAsked): Promise<number> {
  const { plugins } = await readLock(setHome())
  for (const name of names) named(plugins, name)
  const code = await runChange((home, options) => planChange(home, { uninstall: names, offline: true }, options), {
    ...asked,
    verb: 'uninstall',
    done: 'uninstalled',
    yes: true,
    dryRun: false,
    trust: false,
    nothing: 'nothing to uninstall',
  })
  if (code === 0) await sweepOnceUnread()
  return code
}

const PATIENCE_MS = 5_000
const STEP_MS = 50

/** Old workers may read files until they end. The next change deletes these files. */
async function sweepOnceUnread(): Promise<void> {
  for (const end = Date.now() + PATIENCE_MS; Date.now() < end; await setTimeout(STEP_MS))
    if (!(await isDraining())) return sweepSets(setHome())
  process.stderr.write('note: old workers finish their requests; the next change of plugins deletes the files\n')
}

async function isDraining(): Promise<boolean> {
  using stack = new DisposableStack()
  const servers = (await findServers(here().home)).map(server => stack.use(server))
  const infos = await Promise.all(servers.map(({ control }) => control.info(systemContext(AbortSignal.timeout(PATIENCE_MS)))))
  return infos.some(({ workers }) => workers.some(worker => worker.state === 'draining'))
}

/** `svc plugins pack`: writes all installed plugins into one file. */
export async function packPlugins({ file, json }: { readonly file: string; readonly json: boolean }): Promise<number> {
  using interrupt = abortOnInterrupt()
  using progress = openProgress({ quiet: json })
  const path = fromCaller(file)
  try {
    await packSet(setHome(), path, { signal: interrupt.signal, onProgress: progress.report })
  } catch (error) {
    if (!interrupt.signal.aborted) throw error
    progress.clear()
    process.stderr.write('interrupted: nothing was written\n')
    return INTERRUPTED
  }
  progress.clear()
  const names = (await readLock(setHome())).plugins.map(plugin => `${plugin.name} ${plugin.version}`)
  const bytes = statSync(path).size
  return printSuccess(
    { json },
    { text: `wrote ${shownPath(path)}: ${names.join(', ')}`, facts: { file: path, bytes, plugins: names } }
  )
}

const DATE = 'YYYY-MM-DD'.length
const HEAD = ['NAME', 'VERSION', 'OF', 'WHAT IT DOES']

/** `svc plugins search`: lists packages of the registry with the keyword svc-plugin. */
export async function searchRegistry({ text, json }: { readonly text: string; readonly json: boolean }): Promise<number> {
  using interrupt = abortOnInterrupt()
  const found = await searchPlugins(text, { signal: interrupt.signal })
  if (json) process.stdout.write(`${JSON.stringify({ plugins: found }, null, 2)}\n`)
  else if (found.length === 0) process.stderr.write('the registry has no matching plugin (keyword svc-plugin)\n')
  else {
    const rows = found.map(searchPlugin =>
      [
        searchPlugin.name,
        searchPlugin.version,
        searchPlugin.date.slice(0, DATE),
        clipped(oneLine(searchPlugin.description), 80),
      ].map(text => visible(oneLine(text)))
    )
    process.stdout.write(`${table([HEAD, ...rows])}\n`)
  }
  return 0
}
