import { readFileSync } from 'node:fs'
import { join } from 'node:path'
import { styleText } from 'node:util'
import { type Manifest, type PluginReport, readManifest, shownPath } from '@svc/core'
import { type Lock, type LockedPlugin, pluginFolder, readLock, verifySet } from '../../set.ts'
import { setHome } from '@svc/cli/program'
import { counted, milliseconds, oneLine, visible, UNSET_HINT, unsetIn, unsetText } from '@svc/cli/command'
import { accessWords, errorFormatWords, lockedFacts, originWords, routeWords, valueWords } from '../change/proposal-text.ts'
import { type Idle, idleOf, idleText, OUTDATED_STATE, refusedText, reportsOf } from './plugin-state.ts'
import { goesWithout, runsText } from '../change/isolation.ts'
import { named } from '../change/install.ts'

interface Info {
  readonly locked: LockedPlugin
  readonly folder: string
  readonly about: About
  /** The declarations of its manifest. */
  readonly contributes: Manifest['contributes']
  /** Problems of its files. */
  readonly problem: string | undefined
  /** Its state in the running servers. */
  readonly running: readonly PluginReport[]
  readonly isServed: boolean
  /** Why no server runs it. */
  readonly idle: Idle | undefined
  /** The time of the state of its process, if not now. */
  readonly asOf: string | undefined
  /** Variables that it can read and that are not set here. */
  readonly unset: readonly string[]
  /** Its process can run without a sandbox. */
  readonly isOpen: boolean
}

/** The description of a package. */
interface About {
  readonly description?: string
  readonly homepage?: string
  readonly license?: string
}

/** `svc plugins info`: shows one installed plugin; 1 if its files differ from the installed ones. */
export async function showInfo({ name, json }: { readonly name: string; readonly json: boolean }): Promise<number> {
  const home = setHome()
  const lock = await readLock(home)
  const locked = named(lock.plugins, name)
  const folder = pluginFolder(home, lock, locked)
  const reports = await reportsOf(item => item.name === name)
  const running = reports.flatMap(report => report.plugins)
  const info: Info = {
    locked,
    folder,
    about: aboutIn(folder),
    contributes: await contributesIn(folder),
    problem: await problemOf(home, lock, locked),
    running,
    isServed: reports.length > 0,
    idle: (await idleOf([locked], running)).at(0),
    asOf: reports.find(report => report.asOf !== undefined)?.asOf,
    unset: unsetIn(locked.permissions),
    // this command does not report problems of the configuration
    isOpen: await goesWithout().catch(() => false),
  }
  process.stdout.write(`${json ? JSON.stringify(factsOf(info), null, 2) : textOf(info)}\n`)
  return info.problem === undefined ? 0 : 1
}

const TEXTS = ['description', 'homepage', 'license'] as const

function aboutIn(folder: string): About {
  try {
    const pkg = Object(JSON.parse(readFileSync(join(folder, 'package.json'), 'utf8'))) as Record<string, unknown>
    return Object.fromEntries(TEXTS.flatMap(key => (typeof pkg[key] === 'string' ? [[key, pkg[key]]] : [])))
  } catch {
    return {} // the check of the files reports a missing or changed one
  }
}

/** Nothing if the manifest cannot be read: the check of its files reports that. */
const contributesIn = (folder: string): Promise<Manifest['contributes']> =>
  readManifest(join(folder, 'package.json')).then(
    ({ manifest }) => manifest.contributes,
    () => undefined
  )

async function problemOf(home: string, lock: Lock, { name }: LockedPlugin): Promise<string | undefined> {
  // the check treats a disabled plugin like an enabled one
  const on = { ...lock, plugins: lock.plugins.map(plugin => ({ ...plugin, enabled: true })) }
  const problem = (await verifySet(home, on)).find(item => item.plugin === undefined || item.plugin === name)
  return problem && `${problem.message} (${problem.code})`
}

const healthOf = ({ locked, running, isServed, idle }: Info): string => {
  if (!locked.enabled) return 'disabled'
  if (idle && (isServed || idle.health === 'not configured')) return idleText(idle)
  return isServed ? running.map(item => item.state).join(', ') : 'no server runs'
}

const factsOf = (info: Info) => ({
  ...lockedFacts(info.locked),
  ...info.about,
  contributes: info.contributes ?? {},
  folder: info.folder,
  health: healthOf(info),
  ...(info.problem === undefined ? {} : { problem: info.problem }),
  unset_variables: info.unset,
  ...(info.asOf === undefined ? {} : { process_as_of: info.asOf }),
  running: info.running,
})

/** For an isolated plugin. */
function processRows(plugin: PluginReport): string[][] {
  const { restarts, memoryBytes, cpuMs } = plugin
  if (restarts === undefined) return []
  const taken = `${counted((memoryBytes ?? 0) / MIB)} MiB, ${milliseconds(cpuMs ?? 0)} of processor time`
  return [
    ['process', `${taken}, restarted ${restarts} ${restarts === 1 ? 'time' : 'times'}`],
    ['refused', refusedText(plugin) ?? 'nothing'],
  ]
}

const MIB = 1_048_576

function textOf(info: Info): string {
  const { locked, folder, about, contributes, problem, running, unset, asOf, isOpen } = info
  const added = running[0]?.added ?? {}
  const rows = [
    ['from', originWords(locked.origin)],
    ...(about.description === undefined ? [] : [['what', oneLine(about.description)]]),
    ...(about.homepage === undefined ? [] : [['home', about.homepage]]),
    ...(about.license === undefined ? [] : [['licence', about.license]]),
    ...[...routeWords(contributes), ...errorFormatWords(contributes)].map((text, at) => [at === 0 ? 'answers' : '', text]),
    ...accessWords(locked.isolation, locked.permissions).map((text, at) => [at === 0 ? 'may' : '', text]),
    ...valueWords(locked.values ?? {}).map((text, at) => [at === 0 ? 'accepted' : '', text]),
    ['runs', runsText(locked.isolation, isOpen)],
    ['scripts', locked.scripts ? 'allowed at the installation' : 'never run'],
    ...(unset.length === 0 ? [] : [['unset', `${unsetText(unset)}: ${UNSET_HINT}`]]),
    ['health', healthOf(info)],
    ...running.flatMap(processRows),
    ...(asOf === undefined ? [] : [['as of', `${asOf}: ${OUTDATED_STATE}`]]),
    ...Object.entries(added).map(([slot, names]) => ['added', `${slot}: ${names.join(', ')}`]),
    ['files', problem ?? 'they match the installed ones'],
    ['folder', shownPath(folder)],
    ...(locked.integrity === '' ? [] : [['bytes', locked.integrity]]),
  ]
  const lines = rows.map(([word = '', text = '']) => `  ${word.padEnd(8)}  ${visible(text)}`)
  return [`${styleText('bold', locked.name, { stream: process.stdout })} ${locked.version}`, ...lines].join('\n')
}
