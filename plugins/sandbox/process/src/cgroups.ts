import { randomUUID } from 'node:crypto'
import { mkdirSync, writeFileSync } from 'node:fs'
import { access, readdir, readFile, rmdir, stat, writeFile } from 'node:fs/promises'
import { dirname, join, relative } from 'node:path'
import { setTimeout as sleep } from 'node:timers/promises'
import { codeOf } from '@svc/core'
import type { Released } from '@svc/core/contracts'
import { attempt } from './attempt.ts'
import { type Hold, type Holder, type Kind, type Limits, NOTHING } from './holding.ts'
import { isWithin } from './paths.ts'

/** How a version writes a limit, and where it tells that one was met. */
interface Files {
  readonly limits: Readonly<Record<Kind, string>>
  /** Who writes a 0 into it moves itself. Version 1 has one for a single thread, and the shell has no other: the kernel then need not wait until all of the machine stands still. */
  readonly enter: string
  /** For memory that is swapped out: none of it. Missing where the kernel does not count it. */
  readonly swap: (bytes: number) => readonly [file: string, value: string]
  readonly events: Readonly<Record<Kind, readonly [file: string, word: string]>>
}
const FILES: Readonly<Record<1 | 2, Files>> = {
  2: {
    limits: { memory: 'memory.max', pids: 'pids.max' },
    enter: 'cgroup.procs',
    swap: () => ['memory.swap.max', '0'],
    events: { memory: ['memory.events', 'oom_kill'], pids: ['pids.events', 'max'] },
  },
  1: {
    limits: { memory: 'memory.limit_in_bytes', pids: 'pids.max' },
    enter: 'tasks',
    swap: bytes => ['memory.memsw.limit_in_bytes', String(bytes)],
    events: { memory: ['memory.oom_control', 'oom_kill'], pids: ['pids.events', 'max'] },
  },
}

/** A folder in which groups can be made that hold these kinds. */
interface Place {
  readonly version: 1 | 2
  readonly kinds: readonly Kind[]
  readonly folder: string
}

/** Moves itself into each group, and becomes the program; where it cannot, nothing runs. Bash and dash alike. */
const ENTER = 'while [ "$1" != -- ]; do echo 0 > "$1" || exit 126; shift; done; shift; exec "$@"'
/** How the names of this process's groups begin. */
const OURS = `svc-${process.pid}-`
/** The processes of bubblewrap itself. */
const OWN = 2
const TRIAL: Limits = { memory: 67_108_864, pids: 16 }

/** What control groups of a version can hold here, known by making one and moving a process into it. */
export async function cgroupHolder(version: 1 | 2): Promise<Holder | undefined> {
  const found = (await hierarchies()).filter(one => one.version === version)
  const places = (await Promise.all(found.map(placeIn))).filter(place => place !== undefined)
  if (places.length === 0) return undefined
  await Promise.all(places.map(clearUp))
  return { name: `cgroup${version}`, kinds: places.flatMap(place => place.kinds), hold: limits => hold(places, limits) }
}

async function placeIn({ version, kinds, folders }: Hierarchy): Promise<Place | undefined> {
  for (const folder of folders) {
    const held = (await Promise.all(kinds.map(kind => holds({ version, kinds: [kind], folder })))).flatMap((is, at) =>
      is ? [kinds[at]!] : []
    )
    if (held.length > 0) return { version, kinds: held, folder }
  }
  return undefined
}

async function holds(place: Place): Promise<boolean> {
  try {
    const tried = await hold([place], TRIAL)
    const [file, ...args] = tried.before
    const { worked, out } = await attempt(file!, [...args, '/bin/cat', '/proc/self/cgroup'])
    await tried.release()
    return worked && out.includes(`/${OURS}`)
  } catch {
    // Read-only, no such controller, not allowed: another place may do.
    return false
  }
}

async function hold(places: readonly Place[], limits: Limits): Promise<Hold> {
  const name = `${OURS}${randomUUID()}`
  const wanted = places.filter(place => place.kinds.some(kind => limits[kind] !== undefined))
  const groups = wanted.map(place => ({ ...place, folder: join(place.folder, name) }))
  const release = () => releaseAll(groups)
  try {
    await Promise.all(groups.map(group => make(group, limits)))
  } catch (error) {
    await release()
    throw error
  }
  const doors = groups.map(({ version, folder }) => join(folder, FILES[version].enter))
  return { before: ['/bin/sh', '-c', ENTER, 'svc', ...doors, '--'], within: [], env: {}, release }
}

// Not by way of the thread pool: these files are the kernel's, in memory, and a start waits for all of them, one after the other.
async function make({ version, kinds, folder }: Place, limits: Limits): Promise<void> {
  const { limits: files, swap } = FILES[version]
  mkdirSync(folder)
  if (version === 2) await enable(folder, kinds)
  const put = (file: string, value: string) => writeFileSync(join(folder, file), value, { flag: 'r+' })
  if (kinds.includes('pids') && limits.pids !== undefined) put(files.pids, String(limits.pids + OWN))
  if (!kinds.includes('memory') || limits.memory === undefined) return
  put(files.memory, String(limits.memory))
  try {
    put(...swap(limits.memory))
  } catch (error) {
    if (codeOf(error) !== 'ENOENT') throw error
  }
}

/** A controller that the folder above was delegated, but does not hand on yet. It stays so where that folder has processes of its own. */
async function enable(folder: string, kinds: readonly Kind[]): Promise<void> {
  const missing = await Promise.all(
    kinds.map(kind =>
      access(join(folder, FILES[2].limits[kind])).then(
        () => [],
        () => [`+${kind}`]
      )
    )
  )
  if (missing.flat().length > 0) await writeFile(join(dirname(folder), 'cgroup.subtree_control'), missing.flat().join(' '))
}

async function releaseAll(groups: readonly Place[]): Promise<Released> {
  const all = await Promise.all(groups.map(remove))
  return { outOfMemory: all.some(one => one.outOfMemory), outOfPids: all.some(one => one.outOfPids) }
}

const ROUNDS = 400
const ROUND_MS = 5

async function remove({ version, kinds, folder }: Place): Promise<Released> {
  const { events } = FILES[version]
  let met = NOTHING
  for (let round = 0; ; round++) {
    const count = async (kind: Kind) => kinds.includes(kind) && (await countOf(folder, events[kind])) > 0
    met = { outOfMemory: await count('memory'), outOfPids: await count('pids') }
    try {
      await rmdir(folder)
      return met
    } catch (error) {
      if (codeOf(error) === 'ENOENT') return met
      if (codeOf(error) !== 'EBUSY' || round === ROUNDS) throw error
    }
    // Whoever is in it still: nobody outlives the group.
    await killAll(folder)
    await sleep(ROUND_MS)
  }
}

async function killAll(folder: string): Promise<void> {
  const listed = await readFile(join(folder, 'cgroup.procs'), 'utf8').catch(() => '')
  for (const pid of listed.split('\n').filter(Boolean).map(Number)) {
    try {
      process.kill(pid, 'SIGKILL')
    } catch {
      // It has ended.
    }
  }
}

async function countOf(folder: string, [file, word]: readonly [string, string]): Promise<number> {
  const text = await readFile(join(folder, file), 'utf8').catch(() => '')
  return Number(new RegExp(`^${word} (\\d+)$`, 'm').exec(text)?.[1] ?? 0)
}

const OLD_MS = 60_000

/** Removes groups of hosts that were killed. Their processes ended with them, but for those of a sandbox that was just being made. */
async function clearUp({ folder }: Place): Promise<void> {
  const names = (await readdir(folder)).filter(name => /^svc-\d+-[0-9a-f-]{36}$/.test(name))
  for (const name of names) {
    const made = await stat(join(folder, name)).catch(() => undefined)
    const isOld = made !== undefined && Date.now() - made.ctimeMs > OLD_MS
    if (!isOld || isRunning(Number(name.split('-')[1]))) continue
    await killAll(join(folder, name))
    await rmdir(join(folder, name)).catch(() => {})
  }
}

function isRunning(pid: number): boolean {
  try {
    return process.kill(pid, 0)
  } catch (error) {
    return codeOf(error) === 'EPERM'
  }
}

/** Folders of one hierarchy of control groups in which a group might be made: the own one first, then those above. */
interface Hierarchy {
  readonly version: 1 | 2
  /** Of version 1: what the hierarchy is for. */
  readonly kinds: readonly Kind[]
  readonly folders: readonly string[]
}

const KINDS: readonly Kind[] = ['memory', 'pids']

/** The hierarchies of this machine as this process sees them. */
async function hierarchies(): Promise<Hierarchy[]> {
  const [mounts, own] = await Promise.all(['/proc/self/mountinfo', '/proc/self/cgroup'].map(read))
  const groups = own!.split('\n').map(line => /^\d+:([^:]*):(.*)$/.exec(line))
  return mounts!.split('\n').flatMap(line => {
    const [, root, at, type, options] = /^\S+ \S+ \S+ (\S+) (\S+) .* - (cgroup2?) \S+ (\S+)$/.exec(line) ?? []
    if (root === undefined || at === undefined) return []
    const words = options!.split(',')
    const version = type === 'cgroup2' ? 2 : 1
    const kinds = version === 2 ? KINDS : KINDS.filter(kind => words.includes(kind))
    const group = groups.find(one => one && (version === 2 ? one[1] === '' : one[1]!.split(',').includes(kinds[0] ?? '')))
    return group && kinds.length > 0 ? [{ version, kinds, folders: foldersOf(at, root, group[2]!) }] : []
  })
}

/** A container may see only a part of the hierarchy: its `root`. */
function foldersOf(at: string, root: string, group: string): string[] {
  const own = isWithin(group, root) ? join(at, relative(root, group)) : at
  const folders = [own]
  while (folders.at(-1) !== at) folders.push(dirname(folders.at(-1)!))
  return folders
}

const read = (file: string) => readFile(file, 'utf8').catch(() => '')
