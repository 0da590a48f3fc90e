import { readFileSync } from 'node:fs'
import { join } from 'node:path'
import { styleText } from 'node:util'
import { type PluginReport, shownPath, systemUse } from '@svc/core'
import { findServers } from '@svc/core/processes'
import { type Lock, type LockedPlugin, readLock, verifySet } from '@svc/plugin-set'
import { here, setHome } from '../settings.ts'
import { oneLine, visible } from '../text.ts'
import { lockedFacts, originWords, permissionWords } from './candidate-text.ts'
import { folderOf } from './installed.ts'
import { ISOLATIONS } from './isolation.ts'
import { named } from './update.ts'

interface Info {
  readonly locked: LockedPlugin
  readonly folder: string
  readonly about: About
  /** What is wrong with its files. */
  readonly fault: string | undefined
  /** As it stands in the servers that run. */
  readonly running: readonly PluginReport[]
  readonly isServed: boolean
}

/** What a package says of itself. */
interface About {
  readonly description?: string
  readonly homepage?: string
  readonly license?: string
}

/** `svc plugins info`: one installed plugin; 1 where its files are not those that were installed. */
export async function showInfo({ name, json }: { readonly name: string; readonly json: boolean }): Promise<number> {
  const home = setHome()
  const lock = await readLock(home)
  const locked = named(lock.plugins, name)
  const folder = folderOf(home, lock, locked)
  const reports = await reportsOf(name)
  const info: Info = {
    locked,
    folder,
    about: aboutIn(folder),
    fault: await faultOf(home, lock, locked),
    running: reports.flat(),
    isServed: reports.length > 0,
  }
  process.stdout.write(`${json ? JSON.stringify(factsOf(info), null, 2) : textOf(info)}\n`)
  return info.fault === undefined ? 0 : 1
}

const TEXTS = ['description', 'homepage', 'license'] as const

function aboutIn(folder: string): About {
  try {
    const pkg = Object(JSON.parse(readFileSync(join(folder, 'package.json'), 'utf8'))) as Record<string, unknown>
    return Object.fromEntries(TEXTS.flatMap(key => (typeof pkg[key] === 'string' ? [[key, pkg[key]]] : [])))
  } catch {
    return {} // that it is gone or changed is told by the check of its files
  }
}

async function faultOf(home: string, lock: Lock, { name }: LockedPlugin): Promise<string | undefined> {
  // one that is switched off is verified as if it were not
  const on = { ...lock, plugins: lock.plugins.map(one => ({ ...one, enabled: true })) }
  const problem = (await verifySet(home, on)).find(one => one.plugin === undefined || one.plugin === name)
  return problem && `${problem.message} (${problem.code})`
}

const ASK_MS = 10_000

async function reportsOf(name: string): Promise<PluginReport[][]> {
  using stack = new DisposableStack()
  const servers = (await findServers(here().home)).map(server => stack.use(server))
  const reports = await Promise.all(servers.map(({ control }) => control.report(systemUse(AbortSignal.timeout(ASK_MS)))))
  return reports.map(({ plugins }) => plugins.filter(one => one.name === name))
}

const healthOf = ({ locked, running, isServed }: Info): string => {
  if (!locked.enabled) return 'disabled'
  if (!isServed) return 'no server runs'
  return running.map(one => one.state).join(', ') || 'not in the server that runs: svc reload'
}

const factsOf = (info: Info) => ({
  ...lockedFacts(info.locked),
  ...info.about,
  folder: info.folder,
  health: healthOf(info),
  ...(info.fault === undefined ? {} : { fault: info.fault }),
  running: info.running,
})

function textOf(info: Info): string {
  const { locked, folder, about, fault, running } = info
  const added = running[0]?.added ?? {}
  const rows = [
    ['from', originWords(locked.origin)],
    ...(about.description === undefined ? [] : [['what', oneLine(about.description)]]),
    ...(about.homepage === undefined ? [] : [['home', about.homepage]]),
    ...(about.license === undefined ? [] : [['licence', about.license]]),
    ...permissionWords(locked.permissions).map((text, at) => [at === 0 ? 'may' : '', text]),
    ['runs', ISOLATIONS[locked.isolation]],
    ['scripts', locked.scripts ? 'were allowed at install' : 'never run'],
    ['health', healthOf(info)],
    ...Object.entries(added).map(([slot, names]) => ['added', `${slot}: ${names.join(', ')}`]),
    ['files', fault ?? 'those that were installed'],
    ['folder', shownPath(folder)],
    ...(locked.integrity === '' ? [] : [['bytes', locked.integrity]]),
  ]
  const lines = rows.map(([word = '', text = '']) => `  ${word.padEnd(8)}  ${visible(text)}`)
  return [`${styleText('bold', locked.name, { stream: process.stdout })} ${locked.version}`, ...lines].join('\n')
}
