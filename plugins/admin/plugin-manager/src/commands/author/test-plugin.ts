import { existsSync } from 'node:fs'
import { join } from 'node:path'
import { pathToFileURL } from 'node:url'
import { styleText } from 'node:util'
import { messageOf, readManifest, withTimeout, mergeConfig, type PluginRef, planHost, type Plugin } from '@svc/core'
import { joinLooks, type KitCase, openPackage, pluginKit, type PluginSamples } from '@svc/testing'
import { milliseconds, visible } from '@svc/cli/command'
import { type AuthorIsolation, chooseIsolation } from './isolation-here.ts'
import { folderOfPlugin } from './plugin-folder.ts'
import { checkTypes, staleBuild } from './source-and-build.ts'
import { OURS, DEFAULTS, hostOptions } from '@svc/cli/program'

/** The result of one case. */
export interface CaseResult {
  readonly title: string
  readonly state: 'passed' | 'failed' | 'skipped'
  readonly ms: number
  readonly error?: string
}

/** The result of a plugin's kit. */
export interface TestResult {
  readonly plugin: string
  readonly version: string
  readonly seed: number
  readonly isolation: AuthorIsolation
  /** Why it did not run in a process of its own; absent if the author has asked for that. */
  readonly isolation_reason?: string
  readonly cases: readonly CaseResult[]
  /** What its author should know, each once. */
  readonly warnings: readonly string[]
}

interface TestOptions {
  readonly folder: string
  readonly seed: number
  readonly home: string
  /** Default: `process` if this machine and the plugin allow it. */
  readonly isolation?: AuthorIsolation | undefined
}

/** Time limit of a case. */
const CASE_MS = 60_000

/**
 * Runs the kit on the plugin in a folder, with the samples of its `test` folder if it has any. Throws PLUGIN_UNKNOWN,
 * MANIFEST_INVALID.
 */
export async function testPlugin(
  { folder, seed, home, isolation: asked }: TestOptions,
  onResult: (result: CaseResult) => void
): Promise<TestResult> {
  const at = folderOfPlugin(folder)
  const { name, version, manifest } = await readManifest(join(at, 'package.json'))
  const { isolation, reason, sandbox } = await chooseIsolation(at, asked)
  const { beside: theirs, ...samples } = await samplesOf(at)
  const found = theirs ? undefined : await openPackage(at, sandbox).catch(() => undefined)
  // packages that come with svc need not be installed beside the plugin
  const beside =
    theirs?.map(ref => (typeof ref === 'string' ? { use: ref, from: OURS } : ref)) ??
    (await curatedFor(found?.plugin, manifest.runtime, home))
  const results: CaseResult[] = []
  const add = (result: CaseResult) => {
    results.push(result)
    onResult(result)
  }
  using strays = hearStrays(at)
  const warnings = new Set<string>()
  for (const testCase of await pluginKit(at, { ...samples, beside, seed, sandbox })) add(await resultOf(testCase, warnings))
  await addTypes(at, add)
  const stale = staleBuild(at)
  if (stale !== undefined) warnings.add(`${stale.text}; this test ran the source`)
  const error = strays.found().join('\n')
  if (error !== '') add({ title: STRAYS, state: 'failed', ms: 0, error })
  const why = reason === undefined ? {} : { isolation_reason: reason }
  return { plugin: name, version, seed, isolation, ...why, cases: results, warnings: [...warnings] }
}

const TYPES = 'has no type errors'

async function addTypes(folder: string, add: (result: CaseResult) => void): Promise<void> {
  const checked = await checkTypes(folder)
  if (checked === undefined) return
  const { skipped, error, ms } = checked
  if (skipped !== undefined) add({ title: `${TYPES} – skipped: ${skipped}`, state: 'skipped', ms })
  else add({ title: TYPES, state: error === undefined ? 'passed' : 'failed', ms, ...(error === undefined ? {} : { error }) })
}

const STRAYS = 'throws and rejects nothing outside its calls, which would end a server'

/**
 * Collects errors that timers and events of the plugin throw, each once with its line. Without it they would end this process
 * before its report.
 */
function hearStrays(folder: string): Disposable & { found(): readonly string[] } {
  const seen = new Set<string>()
  const own = `${pathToFileURL(folder).href}/`
  const hear = (error: unknown) => {
    const line = error instanceof Error ? error.stack?.split('\n').find(item => item.includes(own)) : undefined
    seen.add([messageOf(error), ...(line === undefined ? [] : [line.replace(own, '').trim()])].join('\n  '))
  }
  process.on('uncaughtException', hear)
  return { found: () => [...seen], [Symbol.dispose]: () => void process.off('uncaughtException', hear) }
}

async function samplesOf(folder: string): Promise<PluginSamples> {
  const file = ['ts', 'mts', 'js', 'mjs'].map(end => join(folder, 'test', `samples.${end}`)).find(existsSync)
  if (file === undefined) return {}
  const module = (await import(pathToFileURL(file).href)) as { default?: PluginSamples }
  return module.default ?? {}
}

async function resultOf(kitCase: KitCase, warnings: Set<string>): Promise<CaseResult> {
  const { title, skipped } = kitCase
  if (skipped !== undefined) return { title, state: 'skipped', ms: 0 }
  const began = performance.now()
  const took = () => Math.round(performance.now() - began)
  let missing: string | undefined
  const skip = (why: string) => (missing = why)
  try {
    await withTimeout(CASE_MS, () => kitCase.run.call({ skip, warn: (text: string) => warnings.add(text) }))
    return missing === undefined
      ? { title, state: 'passed', ms: took() }
      : { title: `${title} – skipped: ${missing}`, state: 'skipped', ms: took() }
  } catch (error) {
    return { title, state: 'failed', ms: took(), error: messageOf(error) }
  }
}

const MADE_UP =
  ' (set `madeUp: true` next to `good` and `bad` if the test may call the tool with generated arguments, effects included)'

const SIGNS = { passed: ['green', 'ok  '], failed: ['red', 'FAIL'], skipped: ['gray', 'skip'] } as const

/** A case for a person. */
export function caseText({ title, state, ms, error = '' }: CaseResult): string {
  const [color, sign] = SIGNS[state]
  const time = ms >= 1000 ? `   (${milliseconds(ms)})` : ''
  const why =
    error === ''
      ? ''
      : `\n${error
          .split('\n')
          .map(line => `       ${visible(line)}`)
          .join('\n')}`
  return `${styleText(color, sign, { stream: process.stdout })}   ${title}${time}${why}`
}

export const hasFailed = ({ cases }: TestResult): boolean => cases.some(({ state }) => state === 'failed')

/** Warnings that most authors can ignore. */
const IGNORED = /: ignore this/

export function summaryText({ plugin, version, seed, isolation, isolation_reason: reason, cases, warnings }: TestResult): string {
  const count = (state: CaseResult['state']) => cases.filter(testCase => testCase.state === state).length
  const isMadeUp = cases.some(({ state, title }) => state === 'skipped' && title.includes('`madeUp: true`'))
  const skipped =
    count('skipped') === 0
      ? ''
      : `, ${count('skipped')} skipped: add what these lines name to test/samples.ts, or the test does not cover it${isMadeUp ? MADE_UP : ''}`
  const all = joinLooks(warnings)
  const serious = all.filter(text => !IGNORED.test(text)).length
  const warned = serious === 0 ? '' : `, ${serious} ${serious === 1 ? 'warning' : 'warnings'} to fix`
  const where = isolation === 'process' ? 'in a process of its own' : 'in the process of svc'
  return [
    ...all.map(text => `${styleText('yellow', 'warn', { stream: process.stdout })} ${visible(text)}`),
    `${plugin} ${version}: ${count('passed')} passed, ${count('failed')} failed${warned}${skipped}; seed ${seed}`,
    `it ran ${where}${reason === undefined ? '' : `: ${reason}`}`,
  ].join('\n')
}

/** The default plugins of a test: they need no key and no file. */
const CONFIG = { plugins: DEFAULTS.plugins, providers: { local: {} } }
const NO_FILES: Readonly<Record<string, string>> = { '@svc/plugin-store-sqlite': '@svc/plugin-store-memory' }

/** The curated plugins that provide the services of a plugin, and their own; provider-local for a chat. */
async function curatedFor(plugin: Plugin | undefined, runtime: string | undefined, home: string): Promise<PluginRef[]> {
  const wanted = [...servicesOf(plugin), ...(runtime === undefined ? [] : [`runtime.${runtime}`])]
  if (wanted.length === 0) return []
  const { loaded } = await planHost(hostOptions(mergeConfig([{ name: 'defaults', value: CONFIG }]), home))
  const needed = new Map<string, (typeof loaded)[number]>()
  for (const service of wanted) {
    const giver = loaded.find(({ plugin: { provides, alsoProvides = [] } }) =>
      [provides, ...alsoProvides].some(token => token?.name === service)
    )
    if (!giver || needed.has(giver.name)) continue
    needed.set(giver.name, giver)
    // the loop also visits names that it adds
    wanted.push(...servicesOf(giver.plugin))
  }
  const local = wanted.includes('chat') ? loaded.filter(item => item.name === '@svc/plugin-provider-local') : []
  return [...needed.values(), ...local].map(({ name }) => ({ use: NO_FILES[name] ?? name, from: OURS }))
}

/** Without the service that isolates the plugin: the kit starts it. */
const servicesOf = (plugin: Plugin | undefined): string[] =>
  Object.entries(plugin?.requires ?? {}).flatMap(([key, { what, name }]) =>
    what === 'service' && !key.startsWith('~') ? [name] : []
  )
