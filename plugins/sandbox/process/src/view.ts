import { execFile } from 'node:child_process'
import { readFile } from 'node:fs/promises'
import { homedir } from 'node:os'
import { delimiter, resolve, sep } from 'node:path'
import { promisify } from 'node:util'
import type { ProcessRequest } from '@svc/core/contracts'
import type { ProcessView } from './bubblewrap.ts'
import { leadsOut } from './errors.ts'
import { hiddenIn, isWithin, leastOf, readable, type Shown, visible } from './paths.ts'
import { findProgram, packageOf, type Program, scriptOf, SYSTEM_FOLDERS } from './program.ts'

/** One process as the sandbox starts it. */
export interface ShownProcess {
  readonly view: Omit<ProcessView, 'unset' | 'protection'>
  /** The program and its arguments. */
  readonly program: readonly string[]
  readonly env: Readonly<Record<string, string>>
  readonly isNode: boolean
  readonly isFenced: boolean
}

const STANDARD = ['/usr/local/bin', '/usr/bin', '/bin']
const TMP_BYTES = 268_435_456
/** Variables that the loader and the shell outside the sandbox would obey. */
const LOADER = /^(LD_|GLIBC_|MALLOC_|BASH_|ENV$|SHELLOPTS$|IFS$)/
/** Programs that start Node for another program: they need child processes. */
const STARTERS = /(^|\/)(npx|npm)$/

/** Decides which files a process sees, and how it is started. Throws SANDBOX_PATH, SANDBOX_COMMAND. */
export async function showFor(request: ProcessRequest, home: string): Promise<ShownProcess> {
  const { command, args, limits } = request
  const asked = await pathsOf(request, home)
  const cwd = asked.cwd ?? '/tmp'
  const program = await findProgram(command, {
    path: request.env.PATH ?? process.env.PATH ?? '',
    cwd: asked.cwd ?? process.cwd(),
  })
  const script = program.isNode ? await scriptOf(args, cwd) : undefined
  const named = command.includes(sep) ? resolve(asked.cwd ?? process.cwd(), command) : program.path
  keepIn(asked, [
    [named, program.real],
    [program.path, program.interpreter ?? program.real],
    ...(script ? [[script.named, script.real] as const] : []),
  ])
  const own = [...program.read, ...(await packagesOf(program, script?.real, { home, write: asked.write }))]
  const all = await Promise.all(own.map(path => visible(path, home)))
  const shown = leastOf({ read: [...asked.read, ...all], write: asked.write })
  const { flags, options } = await fenceFor(request, program, shown)
  const { set, env } = split({ ...defaults(program), ...request.env, ...options })
  return {
    view: {
      ...shown,
      links: uncovered(program, shown),
      hidden: await hiddenIn(SYSTEM_FOLDERS, home),
      network: limits.networkAccess,
      cwd,
      set,
      tmpBytes: limits.memoryBytes ?? TMP_BYTES,
    },
    program: [program.path, ...flags, ...args],
    env,
    isNode: program.node !== undefined,
    isFenced: flags.length > 0 || 'NODE_OPTIONS' in options,
  }
}

/** Resolves the links of the requested folders. */
async function pathsOf({ cwd, limits }: ProcessRequest, home: string): Promise<Shown & { readonly cwd?: string }> {
  const { allowedPaths, readPaths = [], filesystemReadonly } = limits
  const real = (paths: readonly string[], look = visible) => Promise.all(paths.map(path => look(path, home)))
  const [write, read] = await Promise.all([real(allowedPaths), real(readPaths, filesystemReadonly ? readable : visible)])
  const work = cwd === undefined ? undefined : await visible(cwd, home)
  const pairs = [...allowedPaths, ...readPaths].map((path, at) => [resolve(path), [...write, ...read][at]!] as const)
  const places = work === undefined ? [] : [[resolve(cwd!), work] as const]
  stayIn([...pairs, ...(filesystemReadonly ? [] : places)], [...pairs, ...places])
  const own = work === undefined ? read : [...read, work]
  const paths = filesystemReadonly ? { read: own, write } : { read: [], write: [...write, ...own] }
  return { ...paths, ...(work === undefined ? {} : { cwd: work }) }
}

type ResolvedPath = readonly [named: string, real: string]

/** An earlier program can have replaced a folder by a link. A path within a requested folder must stay within it after its links are resolved. */
function stayIn(folders: readonly ResolvedPath[], places: readonly ResolvedPath[]): void {
  for (const [path, real] of places)
    for (const [named, folder] of folders)
      if ((isWithin(path, named) || isWithin(path, folder)) && !isWithin(real, folder)) throw leadsOut(path)
}

/** A program in a writable folder cannot add files to the view: its files must be visible already. */
function keepIn({ read, write }: Shown, places: readonly ResolvedPath[]): void {
  const seen = [...read, ...write, ...SYSTEM_FOLDERS]
  for (const [path, real] of places)
    if (write.some(folder => isWithin(path, folder)) && !seen.some(folder => isWithin(real, folder))) throw leadsOut(path)
}

/** Returns the packages of a program. A package around a person's home is not shown, nor one that a writable folder claims to be in. */
async function packagesOf(
  { node, isNode, path, read }: Program,
  script: string | undefined,
  { home, write }: { readonly home: string; readonly write: readonly string[] }
): Promise<string[]> {
  const homes = [home, ...(await homesOfPeople()), ...write.filter(folder => isWithin(script ?? path, folder))]
  const isTooMuch = (folder: string) => homes.some(item => isWithin(item, folder) && !write.includes(folder))
  if (script !== undefined) return isSystem(script) ? [] : [await packageOf(script, isTooMuch)]
  return node === undefined || isNode || isSystem(path)
    ? []
    : Promise.all(read.filter(item => item !== node).map(item => packageOf(item, isTooMuch)))
}

const isSystem = (path: string) => isWithin(path, '/usr')

/** Links outside the shown folders. */
const uncovered = ({ links }: Program, { read, write }: Shown) =>
  links.filter(([at]) => ![...read, ...write].some(folder => isWithin(at, folder)))

const defaults = ({ folders }: Program) => ({
  PATH: [...new Set([...folders, ...STANDARD])].join(delimiter),
  HOME: '/tmp',
  TMPDIR: '/tmp',
})

/** Splits variables into those of the process bubblewrap, which a list of processes does not show, and those that bubblewrap sets inside. */
function split(all: Readonly<Record<string, string>>): {
  readonly env: Record<string, string>
  readonly set: Record<string, string>
} {
  const of = (inside: boolean) => Object.fromEntries(Object.entries(all).filter(([name]) => LOADER.test(name) === inside))
  return { env: of(false), set: of(true) }
}

interface Fence {
  readonly flags: readonly string[]
  readonly options: Readonly<Record<string, string>>
}

async function fenceFor({ node, command, env }: ProcessRequest, program: Program, shown: Shown): Promise<Fence> {
  const wanted = node ?? program.isNode
  if (!wanted || program.node === undefined || !(await hasPermissions(program.node))) return { flags: [], options: {} }
  const flags = fence(shown)
  if (program.isNode) return { flags, options: {} }
  const more = STARTERS.test(command) ? ['--allow-child-process'] : []
  return { flags: [], options: { NODE_OPTIONS: asOptions([...flags, ...more], env.NODE_OPTIONS) } }
}

/** Home folders of the system's accounts. */
const NONE = /^(\/|\/(usr|bin|sbin|dev|proc|nonexistent)(\/.*)?)$/

/** Returns the homes of the people in this machine's list of accounts. */
async function homesOfPeople(): Promise<readonly string[]> {
  const listed = await readFile('/etc/passwd', 'utf8').catch(() => '')
  const homes = listed.split('\n').flatMap(line => line.split(':')[5] ?? [])
  return [...new Set([homedir(), ...homes.filter(home => !NONE.test(home))])]
}

const run = promisify(execFile)
/** The first minor version of each major with a stable `--permission`. */
const SINCE: Readonly<Record<number, number>> = { 22: 13, 23: 5 }
const ANSWER_MS = 10_000
const SYSTEM = ['/usr', '/etc', '/proc', '/dev', '/tmp']

const versions = new Map<string, Promise<boolean>>()

/** Whether this Node has the permission model. Each file is asked once. */
function hasPermissions(node: string): Promise<boolean> {
  if (node === process.execPath) return Promise.resolve(isNewEnough(process.version))
  const known = versions.get(node) ?? askVersion(node)
  versions.set(node, known)
  return known
}

const askVersion = async (node: string): Promise<boolean> => {
  const { stdout } = await run(node, ['--version'], { timeout: ANSWER_MS, env: {} }).catch(() => ({ stdout: '' }))
  return isNewEnough(stdout)
}

function isNewEnough(version: string): boolean {
  const [, major = 0, minor = 0] = (/^v(\d+)\.(\d+)/.exec(version) ?? []).map(Number)
  return major >= 24 || minor >= (SINCE[major] ?? Number.POSITIVE_INFINITY)
}

/**
 * The flags of a second barrier within the sandbox. It is not enough alone: it does not restrict the network, and node:sqlite could write anywhere, so that is
 * switched off.
 */
const fence = ({ read, write }: Shown): string[] => [
  '--permission',
  '--no-experimental-sqlite',
  ...[...SYSTEM, ...read, ...write].map(path => `--allow-fs-read=${path}`),
  ...['/tmp', ...write].map(path => `--allow-fs-write=${path}`),
]

/** The same for `NODE_OPTIONS`, for a program that starts Node. */
const asOptions = (flags: readonly string[], own = ''): string =>
  [...flags.map(flag => (/[\s"\\]/.test(flag) ? `"${flag.replace(/["\\]/g, '\\$&')}"` : flag)), own].join(' ').trim()
